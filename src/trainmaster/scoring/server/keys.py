"""Who may ask: the two keys of a service, from a file that may change at any time."""

from __future__ import annotations

import json
import os
from hmac import compare_digest
from typing import Optional, Tuple


class Keys:
    """The keys in force. Each question looks whether the file is another one; that costs two microseconds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: Optional[Tuple[int, int, int]] = None
        self._keys: Tuple[bytes, ...] = ()

    def allow(self, authorization: Optional[bytes]) -> bool:
        """Whether this Authorization header holds one of the keys. Without readable keys nobody may ask."""
        self._look()
        scheme, _, given = (authorization or b"").partition(b" ")
        given = given.strip()
        if scheme.lower() != b"bearer" or not given:
            return False
        # All are compared, so that the time says nothing about which one was nearly right.
        found = False
        for key in self._keys:
            found |= compare_digest(key, given)
        return found

    def _look(self) -> None:
        try:
            stat = os.stat(self._path)
        except OSError:
            self._seen, self._keys = None, ()
            return
        seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if seen != self._seen:
            self._keys = _read(self._path)
            self._seen = seen


def _read(path: str) -> Tuple[bytes, ...]:
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read().decode("utf-8"))
        return tuple(data[name].encode("utf-8") for name in ("primary", "secondary") if data.get(name))
    except (OSError, ValueError, AttributeError, TypeError):
        return ()
