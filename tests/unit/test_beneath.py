"""What is removed and renamed stays in its folder, whatever the names are and whatever links lie there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.shared import beneath
from trainmaster.shared.folders import WorkspaceFolder, key_file
from trainmaster.snapshots.model_contents import Contents

OUTSIDE = ["../victim", "/etc", "..", ".", "", "a/../../victim", "a//b", "nul\0byte"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder beside one that must not be touched."""
    (tmp_path / "victim" / "deep").mkdir(parents=True)
    (tmp_path / "victim" / "deep" / "file").write_text("mine")
    place = tmp_path / "root"
    place.mkdir()
    return place


def is_whole(root: Path) -> bool:
    return (root.parent / "victim" / "deep" / "file").read_text() == "mine"


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_do_not_lead_out(root: Path, name: str) -> None:
    (root / "own").write_text("x")
    for work in (
        lambda: beneath.remove_tree(root, name),
        lambda: beneath.rename(root, name, "new"),
        lambda: beneath.rename(root, "own", name),
        lambda: beneath.write_text(root, name, "x"),
    ):
        with pytest.raises(UserErrorException, match="does not lie in"):
            work()
    assert is_whole(root) and os.listdir(root) == ["own"]


def test_links_do_not_lead_out(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "victim")
    left: list[str] = []
    assert beneath.remove_tree(root, "link/deep", left) == 0 and len(left) == 1
    with pytest.raises(OSError):
        beneath.rename(root, "link/deep", "taken")
    with pytest.raises(OSError):
        beneath.rename(root, "link", "link/deep/in")
    with pytest.raises(OSError):
        beneath.write_text(root, "link/deep/file", "theirs")
    assert not beneath.is_folder(root, "link") and not beneath.is_folder(root, "link/deep")
    assert is_whole(root)
    # A link goes as a link.
    beneath.remove_tree(root, "link")
    assert is_whole(root) and os.listdir(root) == []


def test_a_link_is_replaced_not_written_through(root: Path) -> None:
    (root / "file").symlink_to(root.parent / "victim" / "deep" / "file")
    beneath.write_text(root, "file", "new")
    assert is_whole(root) and (root / "file").read_text() == "new" and not (root / "file").is_symlink()
    assert os.listdir(root) == ["file"]


def test_a_whole_tree_goes(root: Path) -> None:
    closed = root / "tree" / "closed"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x" * 10_000)
    (closed / "out").symlink_to(root.parent / "victim")
    os.link(closed / "file", root / "kept")
    (closed / "own").write_text("y" * 10_000)
    closed.chmod(0)
    assert 10_000 <= beneath.remove_tree(root, "tree") < 20_000
    assert os.listdir(root) == ["kept"] and is_whole(root)
    assert beneath.remove_tree(root, "tree") == 0
    assert beneath.remove_tree(root / "nothing", "tree") == 0


def test_a_tree_deeper_than_paths_can_be_long(root: Path) -> None:
    beneath_root = os.open(root, os.O_RDONLY)
    handles = [beneath_root]
    for _ in range(400):
        os.mkdir("d" * 100, dir_fd=handles[-1])
        handles.append(os.open("d" * 100, os.O_RDONLY, dir_fd=handles[-1]))
    for handle in handles:
        os.close(handle)
    left: list[str] = []
    beneath.remove_tree(root, "d" * 100, left)
    assert left == [] and os.listdir(root) == []


@pytest.mark.parametrize("name", [*OUTSIDE, "a/b", ".removed", "-x", "ü", "x" * 256, 7, None])
def test_no_id_from_outside_becomes_a_path(root: Path, name: str) -> None:
    folder = WorkspaceFolder(root)
    for work in (
        lambda: folder.run(name),
        lambda: folder.service(name),
        lambda: folder.image(name, 1),
        lambda: folder.snapshot(name),
        lambda: key_file(name),
    ):
        with pytest.raises(TrainmasterError, match="cannot be"):
            work()


@pytest.mark.parametrize("name", [*OUTSIDE, "a/b", ".removed", "-x", "ü", "x" * 256, "x" * 5000])
def test_any_name_of_a_model_becomes_one_folder(root: Path, name: str) -> None:
    """MLflow's clients choose names freely."""
    if not name:
        with pytest.raises(TrainmasterError, match="cannot be"):
            Contents(root).place_of(name, 1)
        return
    place = Contents(root).place_of(name, 1)
    assert place.name == "1" and place.parent.parent == Contents(root).place_of("plain", 1).parent.parent
    place.mkdir(parents=True)
    assert place.resolve().is_relative_to(root.resolve())


@pytest.mark.parametrize("name", [7, None])
def test_what_is_no_text_is_no_name_of_a_model(root: Path, name: Any) -> None:
    with pytest.raises(TrainmasterError, match="cannot be"):
        Contents(root).place_of(name, 1)


def test_reading_never_follows_a_link(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "a.txt").write_text("hello")
    (tmp_path / "secret").write_text("secret")
    (root / "folder" / "link").symlink_to(tmp_path / "secret")
    (root / "away").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    assert beneath.list_folder(root, "folder") == [("a.txt", 5)]
    assert beneath.list_folder(root, "") == [("folder", None), ("pipe", 0)]
    with beneath.open_file(root, "folder/a.txt") as file:
        assert file.read() == b"hello"
    for name in ("folder/link", "away/secret", "folder", "pipe", "none"):
        with pytest.raises(OSError), beneath.open_file(root, name):
            pass
    for name in ("away", "folder/link", "none"):
        with pytest.raises(OSError):
            beneath.list_folder(root, name)
