"""Finds the unchanged folders of a large tree with two processes.

One checks from the front, the other from the end, until they meet. Threads would only wait for each other: nearly all
of the time goes into one short system call per file.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Set
from typing import NoReturn

from trainmaster.snapshots.recheck import PackNames, Record, fast_pack_names, is_unchanged

# For fewer files, the second process and ctypes cost more than they save.
_MANY_FILES = 10_000
_BYTES_PER_FILE = 48


def find_unchanged(root: bytes, folders: list[Record]) -> Set[bytes]:
    """List the paths of the unchanged folders."""
    if sum(len(record[5]) for record in folders) < _MANY_FILES * _BYTES_PER_FILE:
        return {record[0] for record in folders if is_unchanged(root, record)}
    pack_some = fast_pack_names()
    if not _may_fork():
        return {record[0] for record in folders if is_unchanged(root, record, pack_some)}
    with _second_process(root, folders, pack_some) as answers:
        return _meet(root, folders, pack_some, answers)


def _may_fork() -> bool:
    # A fork of a process with several threads has only one of them, and may inherit locks of the others.
    try:
        return len(os.sched_getaffinity(0)) > 1 and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _meet(root: bytes, folders: list[Record], pack_some: PackNames, answers: int) -> Set[bytes]:
    unchanged: set[bytes] = set()
    front, back = 0, len(folders)
    while front < back:
        for answer in _read_available(answers):
            back -= 1
            if answer == ord("1"):
                unchanged.add(folders[back][0])
        if front < back:
            if is_unchanged(root, folders[front], pack_some):
                unchanged.add(folders[front][0])
            front += 1
    return unchanged


def _read_available(descriptor: int) -> bytes:
    # If the second process died, this one does all the work.
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, 65536)
    return b""


@contextlib.contextmanager
def _second_process(root: bytes, folders: list[Record], pack_some: PackNames) -> Iterator[int]:
    """Start the process that works backwards from the end; return the descriptor of its answers."""
    answers, answering = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    process = None
    with contextlib.suppress(OSError):
        process = os.fork()
        if process == 0:
            _answer(root, folders, pack_some, answering)
    os.close(answering)
    try:
        yield answers
    finally:
        os.close(answers)
        if process:
            # If the user's program ignores SIGCHLD or reaps all children, there is nothing to wait for.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)


def _answer(root: bytes, folders: list[Record], pack_some: PackNames, answering: int) -> NoReturn:
    """Write one byte per folder, the last folder first. Always exit: the user's program must not continue twice."""
    try:
        os.set_blocking(answering, True)
        for record in reversed(folders):
            os.write(answering, b"1" if is_unchanged(root, record, pack_some) else b"0")
    finally:
        os._exit(0)
