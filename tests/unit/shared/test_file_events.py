"""Waiting for files that grow and for something else at the same time."""

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


def test_a_file_that_grows_wakes(tmp_path: Path) -> None:
    with FileEvents() as events:
        assert events.watch(tmp_path)
        (tmp_path / "log").write_text("a")
        assert ready(60, events) == [events]
        events.clear()
        assert ready(0, events) == [], "all that happened is noted"


def test_a_folder_that_cannot_be_watched(tmp_path: Path) -> None:
    events = FileEvents()
    assert not events.watch(tmp_path / "absent")
    events.close()
    assert not events.watch(tmp_path)


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
