"""Another user of the same machine, as tests play one: a process of `nobody`. Only root can become another user."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_stranger(work: Callable[[], bytes]) -> bytes:
    """What `work` returns in a process of another user; its working folder is ours, wherever that is."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            _become_nobody()
            os.write(writer, work())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as said:
        answer = said.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return answer


@contextmanager
def listening_stranger(place: Path) -> Iterator[Callable[[], bytes]]:
    """Another user listens at `place` for one connection; what is yielded tells what was said to that user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            _listen(place, writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    said = open(reader, "rb")  # noqa: SIM115 (closed below)
    assert said.read(1) == b"!", "the stranger could not listen"

    def heard() -> bytes:
        return said.read()

    try:
        yield heard
    finally:
        said.close()
        os.waitpid(child, 0)


def _listen(place: Path, writer: int) -> None:
    with socket(AF_UNIX) as listener:
        listener.bind(str(place))
        os.chmod(place, 0o666)
        os.chown(place, NOBODY, NOBODY)
        _become_nobody()
        listener.listen()
        listener.settimeout(120)
        os.write(writer, b"!")
        connection, _ = listener.accept()
        connection.settimeout(120)
        os.write(writer, connection.recv(1000))


def _become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
