"""What is removed, and how much room there is."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from trainmaster.environments import cleanup
from trainmaster.environments.cleanup import Built

DAY = 86400.0
DIGEST = "0123456789abcdef" * 2


def built(name: str, days_ago: float, size: int = 100, current: bool = True) -> Built:
    return Built(name, Path("/e") / name, current, None, 100 * DAY - days_ago * DAY, size, size)


BUILDS = [built("a.1", 1), built("b.1", 10), built("b.2", 2), built("c.1", 30), built("d.1", 50, current=False)]


@pytest.mark.parametrize(
    ("limits", "in_use", "gone"),
    [
        ({}, [], ["d.1"]),
        ({}, ["d.1"], []),
        ({"older_than_days": 5}, [], ["b.1", "c.1", "d.1"]),
        ({"older_than_days": 5}, ["c.1"], ["b.1", "d.1"]),
        ({"keep_bytes": 250}, [], ["d.1", "c.1", "b.1"]),
        ({"keep_bytes": 0}, ["a.1"], ["d.1", "c.1", "b.1", "b.2"]),
        ({"keep_bytes": 10_000}, [], ["d.1"]),
        ({"keep_bytes": 150, "older_than_days": 20}, [], ["c.1", "d.1", "b.1", "b.2"]),
    ],
)
def test_doomed(limits: dict[str, float], in_use: list[str], gone: list[str]) -> None:
    found = cleanup.choose_removable(BUILDS, [f"/e/{name}" for name in in_use], 100 * DAY, **limits)
    assert [each.name for each in found] == gone


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/own").write_bytes(b"x" * 10)
    (tmp_path / "in/twice").write_bytes(b"x" * 100)
    os.link(tmp_path / "in/twice", tmp_path / "in/deep/again")
    (tmp_path / "in/cached").write_bytes(b"x" * 1000)
    os.link(tmp_path / "in/cached", tmp_path / "cache")
    assert cleanup.sizes(tmp_path / "in") == (1110, 110)


def test_hidden_in_one_step(tmp_path: Path) -> None:
    (tmp_path / f"{DIGEST}.1").mkdir()
    (tmp_path / DIGEST).symlink_to(f"{DIGEST}.1")
    hidden = cleanup.hide(tmp_path, f"{DIGEST}.1")
    assert hidden is not None
    assert [each.name for each in cleanup.list_builds(tmp_path)] == []
    assert not (tmp_path / DIGEST).is_symlink()
    cleanup.delete(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [f"{DIGEST}.lock"]
    assert cleanup.hide(tmp_path, f"{DIGEST}.1") is None


def test_what_killed_builders_left_goes_and_what_is_being_built_stays(tmp_path: Path) -> None:
    other = "b" * 32
    for name in (f".building-{DIGEST}-1", f".building-{DIGEST}-1.resolving", f".building-{other}-2"):
        (tmp_path / name / "lib").mkdir(parents=True)
    with open(tmp_path / f"{other}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cleanup.delete(tmp_path)
        assert sorted(path.name for path in tmp_path.glob(".building-*")) == [f".building-{other}-2"]
    cleanup.delete(tmp_path)
    assert list(tmp_path.glob(".building-*")) == []


@pytest.mark.parametrize("name", ["..", "../x", "x", f"{DIGEST}", f"{DIGEST}.1/..", ".building-x"])
def test_only_builds_can_be_hidden(tmp_path: Path, name: str) -> None:
    assert cleanup.hide(tmp_path, name) is None


def test_removing_an_old_build_leaves_the_name_of_the_new_one(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{DIGEST}.{number}").mkdir()
    (tmp_path / DIGEST).symlink_to(f"{DIGEST}.2")
    assert cleanup.hide(tmp_path, f"{DIGEST}.1") is not None
    assert os.readlink(tmp_path / DIGEST) == f"{DIGEST}.2"
