"""Sends contents by their digests: only those that the server lacks, several at a time, each continued if it is cut."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.http import Request, join_path

_AT_ONCE = 8
# Larger contents are sent in parts, so that a lost connection costs one part at most.
_PART = 32 << 20
_MOST_DIGESTS = 20_000
# Progress is shown for uploads that take longer.
_QUIET_SECONDS = 3.0
_SHOW_SECONDS = 1.0


@dataclass(frozen=True)
class Content:
    """A file to send, by the digest of its contents."""

    digest: str
    size: int
    path: Path


def send_contents(connection: RemoteConnection, kind: str, contents: Sequence[Content]) -> int:
    """Sends what the server lacks; returns how many bytes that was. Raises FileNotFoundError if a file is gone."""
    wanted = {content.digest: content for content in contents}
    missing = [wanted[digest] for digest in find_missing(connection, kind, list(wanted.values()))]
    if not missing:
        return 0
    total = sum(content.size for content in missing)
    progress = _Progress(total, len(missing), str(connection.client.address))
    sender = _Sender(connection, kind, progress)
    # Large contents first: the last one to end is then a small one.
    missing.sort(key=lambda content: content.size, reverse=True)
    with ThreadPoolExecutor(min(_AT_ONCE, len(missing)), "trainmaster-upload") as pool:
        pending = [pool.submit(sender.send, content) for content in missing]
        try:
            for each in pending:
                each.result()
        except BaseException:
            sender.stop()
            for each in pending:
                each.cancel()
            raise
        finally:
            progress.close()
    return total


def find_missing(connection: RemoteConnection, kind: str, contents: Sequence[Content]) -> Iterator[str]:
    """The digests of those contents that the server does not have, or that are damaged there."""
    path = f"{connection.path}/contents{join_path(kind)}/missing"
    for start in range(0, len(contents), _MOST_DIGESTS):
        part = contents[start : start + _MOST_DIGESTS]
        digests = [[content.digest, content.size] for content in part]
        yield from connection.client.call("POST", path, {"digests": digests})["missing"]


class _Sender:
    """Sends contents of one kind; used by several threads."""

    def __init__(self, connection: RemoteConnection, kind: str, progress: _Progress) -> None:
        self._connection = connection
        self._kind = kind
        self._progress = progress
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Sends no further part."""
        self._stopped.set()

    def send(self, content: Content) -> None:
        """Sends one content, from where an earlier attempt ended."""
        path = f"{self._connection.path}/contents{join_path(self._kind, content.digest)}"
        start = self._count_received(path) if content.size > _PART else 0
        self._progress.add(start)
        while not self._stopped.is_set():
            size = min(_PART, content.size - start)
            self._put(path, content, start, size)
            self._progress.add(size)
            start += size
            if start >= content.size:
                return

    def _count_received(self, path: str) -> int:
        answer = self._connection.client.request(Request("HEAD", path), accept=lambda status: status == 404)
        received = answer.headers.get("x-received", "0")
        return int(received) if answer.status != 404 and received.isdigit() else 0

    def _put(self, path: str, content: Content, start: int, size: int) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        if content.size > _PART:
            headers["Content-Range"] = f"bytes {start}-{start + size - 1}/{content.size}"

        def open_part() -> IO[bytes]:
            try:
                file = open(content.path, "rb")  # noqa: SIM115 (the client closes it)
            except FileNotFoundError:
                raise _FileGoneError from None
            file.seek(start)
            return file

        try:
            self._connection.client.request(Request("PUT", path, headers=headers, body=open_part, size=size))
        except _FileGoneError:
            raise FileNotFoundError(content.path) from None


class _FileGoneError(Exception):
    """Not an OSError, which the client takes for a lost connection and repeats the request."""


class _Progress:
    """Says how far a long upload is, on a terminal."""

    def __init__(self, total: int, count: int, server: str) -> None:
        self._total = total
        self._text = f"{count} files" if count > 1 else "a file"
        self._server = server
        self._sent = 0
        self._guard = threading.Lock()
        self._begun = self._shown = time.monotonic()
        self._has_shown = False

    def add(self, size: int) -> None:
        """Notes that so many more bytes have arrived."""
        with self._guard:
            self._sent += size
            now = time.monotonic()
            if now - self._begun < _QUIET_SECONDS or now - self._shown < _SHOW_SECONDS or not sys.stderr.isatty():
                return
            self._shown = now
            self._has_shown = True
            megabytes = f"{self._sent / 1e6:.0f} of {self._total / 1e6:.0f} MB"
            sys.stderr.write(f"\rSending {self._text} to {self._server}: {megabytes} ")
            sys.stderr.flush()

    def close(self) -> None:
        """Ends the line."""
        if self._has_shown:
            sys.stderr.write("\n")
