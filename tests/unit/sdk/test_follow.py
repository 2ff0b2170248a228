"""The loop that says when to look again: news, files that grow, and time, with inotify and without."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.sdk.backend.local.following import follow
from trainmaster.shared.file_events import FileEvents


class Letters:
    """A source of news: each byte that was sent is a piece of it."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()

    def send(self, text: str) -> None:
        self._theirs.send(text.encode())

    def fileno(self) -> int:
        return self._ours.fileno()

    def next(self) -> str:
        return self._ours.recv(1).decode()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def source() -> Iterator[Letters]:
    made = Letters()
    yield made
    made.close()


@pytest.fixture(params=["with inotify", "without inotify"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that reports growing files, and one where all of the user's watches are in use."""
    if request.param == "without inotify":
        monkeypatch.setattr(FileEvents, "watch", lambda self, folder: False)


def test_the_first_look_is_at_once() -> None:
    assert next(follow()) is None


@pytest.mark.usefixtures("system")
def test_a_file_that_grows_is_reported(tmp_path: Path, source: Letters) -> None:
    looks = follow(source, [tmp_path])
    next(looks)
    (tmp_path / "log").write_text("a")
    assert next(looks) is None


@pytest.mark.usefixtures("system")
def test_a_folder_that_appears_is_reported(tmp_path: Path, source: Letters) -> None:
    folder = tmp_path / "logs"
    looks = follow(source, [folder])
    next(looks)
    folder.mkdir()
    assert next(looks) is None
    (folder / "log").write_text("a")
    assert next(looks) is None


def test_a_folder_that_does_not_exist_is_not_looked_at(tmp_path: Path, source: Letters) -> None:
    looks = follow(source, [tmp_path / "logs"])
    next(looks)
    source.send("x")
    assert next(looks) == "x"


@pytest.mark.usefixtures("system")
def test_each_piece_of_news_is_yielded_in_order(tmp_path: Path, source: Letters) -> None:
    source.send("xyz")
    looks = follow(source, [tmp_path])
    assert [next(looks), next(looks), next(looks), next(looks)] == [None, "x", "y", "z"]


def test_news_is_not_held_back_by_files(tmp_path: Path, source: Letters) -> None:
    looks = follow(source, [tmp_path], hold=3600.0)
    next(looks)
    (tmp_path / "log").write_text("a")
    source.send("x")
    assert next(looks) == "x"


def test_time_alone_is_reported() -> None:
    looks = follow(every=0.001)
    assert [next(looks), next(looks), next(looks)] == [None] * 3


def test_what_is_written_between_two_looks_is_one_report(
    tmp_path: Path, source: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = follow(source, [tmp_path])
    next(looks)
    for number in range(10):
        (tmp_path / f"log {number}").write_text("a")
    assert next(looks) is None
    source.send("x")
    assert next(looks) == "x", "the files were noted before"
