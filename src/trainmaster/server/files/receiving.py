"""Reads large bodies of requests in pieces. The application refuses bodies that are too large or that stall."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, Request

from trainmaster.server.errors import HttpError, refuse

# Below this rate a client only holds a connection. The first seconds are free.
_LEAST_BYTES_PER_SECOND = 1000
_FREE_SECONDS = 60.0
_PIECE = 1 << 20


async def read_pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body in pieces of about a megabyte.

    If it is cut, what arrived is yielded before the error is raised, so that an upload can continue behind it.
    """
    received = waiting = 0
    collected: list[bytes] = []
    clock = asyncio.get_running_loop().time
    begun = clock()
    failure: Exception | None = None
    stream = request.stream()
    while True:
        try:
            chunk = await anext(stream)
        except StopAsyncIteration:
            break
        except (ClientDisconnect, HttpError) as error:
            failure = error
            break
        received += len(chunk)
        waiting += len(chunk)
        if received > limit:
            raise refuse(
                413, "the body of the request is too large", f"The limit is {limit} bytes.", Connection="close"
            )
        seconds = clock() - begun
        if seconds > _FREE_SECONDS and received < _LEAST_BYTES_PER_SECOND * seconds:
            failure = refuse(408, "the body of the request arrives too slowly", Connection="close")
            break
        collected.append(chunk)
        if waiting >= _PIECE:
            yield b"".join(collected)
            collected, waiting = [], 0
    if waiting:
        yield b"".join(collected)
    if failure is not None:
        raise failure
