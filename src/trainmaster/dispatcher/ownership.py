"""The lock by which one process of a machine owns a workspace. It ends with the process."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from trainmaster.shared.folders import WorkspaceFolder


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Take the lock and yield whether this process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        yield True
    finally:
        os.close(lock)


def ownership(folder: WorkspaceFolder) -> contextlib.AbstractContextManager[bool]:
    """Take the lock of the workspace and yield whether this process has it."""
    return hold_lock(folder.lock)
