"""Fetches files from the server. A connection that is lost is continued where it ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.remote.answers import UnavailableException
from trainmaster.sdk.backend.remote.http import LOST, HttpClient, Request, Stream, read_blocks
from trainmaster.shared.retry import Backoff

_PATIENCE_SECONDS = 60.0
_SILENCE_SECONDS = 60.0


def read_part(client: HttpClient, path: str, start: int, size: int | None) -> bytes:
    """A part of a file; empty behind its end."""
    if size == 0:
        return b""
    headers = {} if start == 0 and size is None else {"Range": _range(start, size)}
    answer = client.request(Request("GET", path, headers=headers), accept=lambda status: status == 416)
    if answer.status == 416:
        return b""
    # A server may send the whole file instead of a part.
    return answer.body if answer.status == 206 or not headers else answer.body[start:][:size]


def fetch(client: HttpClient, path: str, target: Path) -> None:
    """Writes a file of the server to `target`, whose folder is created. It is complete, or not there."""
    partial = target.with_name(f".partial-{os.urandom(8).hex()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as file:
            for block in stream_file(client, path, file):
                file.write(block)
        os.replace(partial, target)
    except OSError as error:
        raise UserErrorException(f"{target.name} cannot be copied to {target}", cause=str(error)) from None
    finally:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            partial.unlink()


def stream_file(client: HttpClient, path: str, file: IO[bytes], start: int = 0) -> Iterator[bytes]:
    """The blocks of a file from `start` on. `file` tells how many of them were written, for the next attempt."""
    backoff = Backoff(first=0.1, longest=5.0)
    first = file.tell()
    since = time.monotonic()
    tag = ""
    while True:
        at = start + file.tell() - first
        headers = {"Range": _range(at, None), **({"If-Match": tag} if tag else {})} if at else {}
        stream = client.open(
            Request("GET", path, headers=headers, seconds=_SILENCE_SECONDS), accept=lambda status: status == 416
        )
        try:
            if stream.status == 416:
                return
            tag = tag or stream.headers.get("etag", "")
            for block in _skip_to(stream, at):
                since = time.monotonic()
                yield block
            return
        except LOST as error:
            lost: Exception = error
        finally:
            stream.close()
        if time.monotonic() - since > _PATIENCE_SECONDS:
            raise UnavailableException(f"the file cannot be read from {client.address}", cause=str(lost)) from None
        backoff.block()


def _skip_to(stream: Stream, at: int) -> Iterator[bytes]:
    """The blocks of an answer, without what comes before `at` in an answer with the whole file."""
    skip = at if stream.status == 200 else 0
    for block in read_blocks(stream):
        if skip >= len(block):
            skip -= len(block)
            continue
        yield block[skip:] if skip else block
        skip = 0


def _range(start: int, size: int | None) -> str:
    return f"bytes={start}-" + ("" if size is None else str(start + size - 1))
