"""Waiting for files that grow and for something else at the same time, with inotify and without."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.shared.file_events import FileEvents, ready


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_file_that_grows_wakes(tmp_path: Path, line: tuple[socket.socket, socket.socket]) -> None:
    with FileEvents() as events:
        events.watch(tmp_path)
        (tmp_path / "log").write_text("a")
        assert events.wait(line[0]) is False
        # All that happened is noted: it is not told again.
        assert ready(0, events) == []


def test_the_other_wakes(tmp_path: Path, line: tuple[socket.socket, socket.socket]) -> None:
    with FileEvents() as events:
        events.watch(tmp_path)
        line[1].send(b"x")
        assert events.wait(line[0]) is True


def test_where_nothing_is_told_one_looks_now_and_then(line: tuple[socket.socket, socket.socket]) -> None:
    events = FileEvents()
    # As where the user has as many of them as there may be.
    events.close()
    assert events.wait(line[0]) is False
    line[1].send(b"x")
    assert events.wait(line[0]) is True


def test_nothing_to_wait_for_but_the_time() -> None:
    assert ready(0) == []


def test_handles_beyond_a_thousand(line: tuple[socket.socket, socket.socket]) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1100), hard))
    try:
        number = os.dup2(line[0].fileno(), 1090)
        with socket.socket(fileno=number) as high:
            line[1].send(b"x")
            assert ready(60, high) == [high]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
