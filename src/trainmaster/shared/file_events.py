"""Notifications when files in a folder change: inotify through ctypes. Without inotify, the caller has to poll."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
from collections.abc import Hashable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)

_IN_MODIFY, _IN_MOVED_TO, _IN_CREATE = 0x2, 0x80, 0x100
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC


class Readable(Protocol):
    """What can be waited for."""

    def fileno(self) -> int: ...


def ready(seconds: float | None, *sources: Readable) -> list[Readable]:
    """Those of the sources that can be read, as soon as one can; none if the time is over first."""
    # Not select(): it fails in a program that has more than a thousand files open.
    poll = select.poll()
    handles = {source.fileno(): source for source in sources}
    for handle in handles:
        poll.register(handle, select.POLLIN)
    return [handles[handle] for handle, _ in poll.poll(None if seconds is None else seconds * 1000)]


class FileEvents:
    """Readable (for select) whenever something in one of the watched folders changed."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watched: set[Path] = set()
        try:
            self._handle: int = self._libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        except AttributeError:
            self._handle = -1

    @property
    def works(self) -> bool:
        """Whether the system reports changes in at least one folder."""
        return self._handle >= 0 and bool(self._watched)

    def watch(self, folder: Path) -> bool:
        """Watches one more folder. False if it does not exist or cannot be watched."""
        if folder in self._watched:
            return True
        if self._handle < 0 or not folder.is_dir():
            return False
        mask = _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE
        if self._libc.inotify_add_watch(self._handle, os.fsencode(folder), mask) < 0:
            return False
        self._watched.add(folder)
        return True

    def fileno(self) -> int:
        return self._handle

    def clear(self) -> None:
        """Takes note of all that happened so far."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._handle, 65536):
                pass

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> FileEvents:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class FolderEvents(Generic[Key]):
    """Reports which of many folders changed. The caller gives each a key."""

    # struct inotify_event: which watch, what, a cookie, and the length of the name that follows.
    _HEADER = struct.Struct("iIII")

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._keys: dict[int, Key] = {}
        self._watches: dict[Key, int] = {}
        try:
            self._handle: int = self._libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        except AttributeError:
            self._handle = -1

    @property
    def works(self) -> bool:
        """Whether the system reports changes."""
        return self._handle >= 0

    def watch(self, folder: Path, key: Key) -> None:
        """Watches one more folder, which is there."""
        if self._handle < 0 or key in self._watches:
            return
        watch = self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE)
        if watch >= 0:
            self._keys[watch] = key
            self._watches[key] = watch

    def forget(self, key: Key) -> None:
        """Watches a folder no more."""
        watch = self._watches.pop(key, None)
        if watch is not None:
            del self._keys[watch]
            self._libc.inotify_rm_watch(self._handle, watch)

    def fileno(self) -> int:
        return self._handle

    def take(self) -> set[Key]:
        """The keys of all folders in which something changed since the last time."""
        found: set[Key] = set()
        with contextlib.suppress(BlockingIOError):
            while text := os.read(self._handle, 65536):
                place = 0
                while place < len(text):
                    watch, _, _, length = self._HEADER.unpack_from(text, place)
                    place += self._HEADER.size + length
                    if watch in self._keys:
                        found.add(self._keys[watch])
                    elif watch == -1:
                        # The queue of the kernel overflowed: any folder may have changed.
                        found.update(self._watches)
        return found

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
