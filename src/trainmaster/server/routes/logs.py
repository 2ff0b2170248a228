"""The logs of runs: listing, reading from an offset, and following live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from trainmaster.sdk.backend.backend import LOGS, LogFile
from trainmaster.sdk.backend.local.masks import UnknownMaskError, find_known_mask, mask_of
from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.feeds.run_feeds import Patience, RunFeed
from trainmaster.server.files.log_search import LONGEST_TEXT, MOST_MATCHES, LogMatches, search_log
from trainmaster.server.files.log_text import (
    MOST_AT_ONCE,
    cut_text,
    list_logs,
    list_sequence,
    locate_log,
    open_log,
    read_masked,
    skip_torn_start,
)
from trainmaster.server.files.opening import NotBeneathError, split_name
from trainmaster.server.files.run_place import RunPlace
from trainmaster.server.files.sending import SAFE_RAW_HEADERS, Event, EventStream
from trainmaster.server.files.settled import describe_settled
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import find_run
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.redaction import Mask

_PIECE = 256 * 1024
"""The longest text of one event."""
_SHORT = 64 * 1024
"""What is read without a thread."""
_LOGS = frozenset({LOGS})
# Each reads up to 128 MiB: they must not take all threads.
_searches = asyncio.Semaphore(2)
STREAM_SECONDS = 1800.0
"""After this a stream ends, and the client continues with another: its token is checked again then."""


async def list_run_logs(call: Call, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """All logs by name; of logs with the same name, those of earlier attempts come first."""
    place = await find_run(call, run_id)
    logs = await to_thread.run_sync(list_logs, place)
    return {"logs": [_describe(log) for log in logs]}


def _describe(log: LogFile) -> dict[str, Any]:
    return {
        "name": log.name,
        "identity": log.identity,
        "size": log.size,
        "rank": log.rank,
        "attempt": log.attempt,
    }


async def get_log(
    call: Call,
    run_id: str,
    name: str,
    identity: str | None = None,
    start: int = 0,
    size: int = MOST_AT_ONCE,
    last: int | None = None,
) -> Response:
    """A part of a log, at most 1 MiB, with secrets hidden.

    `last` starts so many bytes before the end. With `identity`, nothing is returned if the log of this name is another
    one meanwhile. The header `X-Next-Offset` says where the next part begins.
    """
    if start < 0 or size < 0 or (last is not None and last < 0):
        raise refuse(400, "offsets and sizes cannot be negative")
    place = RunPlace.locate(call.workspace.folder, run_id)
    wanted = _Wanted(place, name, identity, start, min(size, MOST_AT_ONCE), last)
    try:
        part = await _read_part(wanted)
    except NotBeneathError:
        await find_run(call, run_id)
        if identity is None:
            raise refuse(404, f"run {run_id} has no log {name[:300]!r}") from None
        part = _Part("", b"", start)
    response = Response(part.data, media_type="application/octet-stream")
    following = str(part.start + len(part.data)).encode()
    response.raw_headers += [
        *SAFE_RAW_HEADERS,
        (b"x-next-offset", following),
        (b"x-identity", part.identity.encode()),
    ]
    return response


@dataclass(frozen=True)
class _Part:
    identity: str
    data: bytes
    start: int


@dataclass(frozen=True)
class _Wanted:
    """What a request wants to read of a log."""

    place: RunPlace
    name: str
    identity: str | None
    start: int
    size: int
    last: int | None = None

    def try_now(self) -> _Part | None:
        """The part, if that takes microseconds: a thread would take longer than reading a short log."""
        if not self.place.is_quick:
            return None
        short = self if self.size <= _SHORT else replace(self, size=_SHORT)
        try:
            mask = find_known_mask(self.place.folder)
            state = describe_settled(locate_log(self.place, self.name))
            part = short._read(find_known_mask) if state is None else _read_settled(short, state, mask)
        except UnknownMaskError:
            return None
        return part if short is self or len(part.data) < short.size else None

    def read(self) -> _Part:
        """The part. Raises NotBeneathError if there is no such log."""
        return self._read(mask_of)

    def _read(self, fetch_mask: Callable[[RunFolder], Mask]) -> _Part:
        file = open_log(self.place, self.name)
        try:
            if self.identity not in (None, file.identity):
                return _Part(file.identity, b"", self.start)
            start = self.start if self.last is None else max(0, file.size - self.last)
            data = read_masked(file.handle, start, self.size, partial(fetch_mask, self.place.folder))
            return _Part(file.identity, data, start)
        finally:
            file.close()


@lru_cache(maxsize=128)
def _read_settled(wanted: _Wanted, _state: tuple[int, ...], _mask: Mask) -> _Part:
    """A part of a log that does not grow any more: it is opened once, though many clients may show it."""
    return wanted._read(find_known_mask)


async def _read_part(wanted: _Wanted) -> _Part:
    found = wanted.try_now()
    return found if found is not None else await to_thread.run_sync(wanted.read)


async def search_run_log(
    call: Call, run_id: str, name: str, text: str, identity: str | None = None, start: int = 0, limit: int = 200
) -> LogMatches:
    """The lines of a log that contain `text`, from the line at `start` on, whatever the case of ASCII letters.

    One answer covers at most 128 MiB of the log; `next` says where to continue. Secrets are hidden, also from the
    search. With `identity`, nothing is found if the log of this name is another one meanwhile.
    """
    place = await find_run(call, run_id)
    if not text or len(text) > LONGEST_TEXT or "\n" in text or start < 0:
        raise refuse(400, f"a text to search for has 1 to {LONGEST_TEXT} characters and no line break")
    try:
        async with _searches:
            return await to_thread.run_sync(
                _search, place, name, identity, text, start, max(1, min(limit, MOST_MATCHES))
            )
    except NotBeneathError:
        raise refuse(404, f"run {run_id} has no log {name[:300]!r}") from None


def _search(place: RunPlace, name: str, identity: str | None, text: str, start: int, limit: int) -> LogMatches:
    file = open_log(place, name)
    try:
        if identity not in (None, file.identity):
            return LogMatches(file.identity, (), None, 0)
        fetch = partial(mask_of, place.folder)
        read = partial(read_masked, file.handle, fetch_mask=fetch)
        return search_log(read, file.identity, file.size, text, start, limit)
    finally:
        file.close()


async def stream_log(call: Call, run_id: str, name: str, last: int | None = None) -> EventStream:
    """Follow a log to the end of the run, through all attempts.

    Events: `log` when a log begins, `text` with what was added, `end` when the run has ended. Their ids are
    `IDENTITY:OFFSET`; the header `Last-Event-ID` continues exactly there. `last` starts so many bytes before the end.
    """
    place = await find_run(call, run_id)
    try:
        split_name(name)
    except NotBeneathError:
        raise refuse(404, f"run {run_id} has no log {name[:300]!r}") from None
    position = _parse_id(call.request.headers.get("last-event-id"))
    return EventStream(_follow(call, place, name, position, last))


def _parse_id(text: str | None) -> tuple[str, int] | None:
    """Identity and offset in the id of an event.

    >>> _parse_id("77:1024"), _parse_id("nonsense")
    (('77', 1024), None)
    """
    identity, _, offset = (text or "").partition(":")
    if not (identity.isascii() and identity.isdigit() and offset.isascii() and offset.isdigit() and len(offset) < 19):
        return None
    return identity, int(offset)


async def _follow(
    call: Call, place: RunPlace, name: str, position: tuple[str, int] | None, last: int | None
) -> AsyncGenerator[Event]:
    follower = _Follower(place, name, position, last)
    with call.parts.feeds.follow(place.folder, call) as feed:
        patience = Patience(call.parts.stopping, STREAM_SECONDS)
        # The first state says whether the run has ended.
        has_news = await feed.wait(lambda: bool(feed.states_since(0)[0]), patience)
        while has_news:
            seen, has_ended = feed.version(_LOGS), feed.has_ended
            async for event in follower.read_new(has_ended):
                yield event
            if has_ended:
                yield Event("end", {"status": feed.states_since(0)[0][-1]["status"]})
                return
            has_news = await feed.wait(partial(_has_news, feed, seen), patience)


def _has_news(feed: RunFeed, seen: int) -> bool:
    return feed.version(_LOGS) != seen or feed.has_ended


class _Follower:
    """Reads the logs of one name, one after the other, each byte once."""

    def __init__(self, place: RunPlace, name: str, position: tuple[str, int] | None, last: int | None) -> None:
        self._place = place
        self._name = name
        self._identity, self._offset = position or ("", 0)
        self._last = None if position else last
        self._finished: set[str] = set()
        """The logs that were read to their ends."""
        self._is_announced = False
        self._starts_inside = False
        """Whether the next text may begin inside of a character."""

    async def read_new(self, has_ended: bool) -> AsyncGenerator[Event]:
        """What was added since the last time."""
        while True:
            sequence = list_sequence(await to_thread.run_sync(list_logs, self._place), self._name)
            current = self._find_current(sequence)
            if current is None:
                return
            if not self._is_announced:
                self._is_announced = True
                yield Event("log", {**_describe(current), "start": self._offset}, self._id)
            is_last = current.identity == sequence[-1].identity
            while (part := await self._read(current, is_final=has_ended or not is_last)) is not None:
                yield Event("text", {"text": part.decode("utf-8", "replace")}, self._id)
            if self._is_elsewhere:
                # It was moved after the listing.
                continue
            if is_last:
                return
            self._finished.add(current.identity)

    def _find_current(self, sequence: list[LogFile]) -> LogFile | None:
        """The log to read now; None if there is none yet."""
        left = [log for log in sequence if log.identity not in self._finished]
        found = [number for number, log in enumerate(left) if log.identity == self._identity]
        if not left:
            return None
        if found:
            # A client that continues has read those before.
            self._finished.update(log.identity for log in left[: found[0]])
            if self._offset <= left[found[0]].size:
                return left[found[0]]
        # The first look, the end of a log, or a log that was replaced by another one.
        chosen, start = left[found[0] if found else 0], 0
        if self._last is not None:
            chosen, start = left[-1], max(0, left[-1].size - self._last)
            self._starts_inside = start > 0
            self._finished.update(log.identity for log in left[:-1])
            self._last = None
        self._identity, self._offset = chosen.identity, start
        self._is_announced = False
        return chosen

    @property
    def _id(self) -> str:
        return f"{self._identity}:{self._offset}"

    async def _read(self, log: LogFile, is_final: bool) -> bytes | None:
        """The next text of a log; None at its end, or if it is not where it was listed."""
        self._is_elsewhere = False
        try:
            wanted = _Wanted(self._place, log.name, log.identity, self._offset, _PIECE)
            part = await _read_part(wanted)
        except NotBeneathError:
            part = None
        if part is None or part.identity != log.identity:
            self._is_elsewhere = True
            return None
        torn = skip_torn_start(part.data) if self._starts_inside else 0
        data = cut_text(part.data[torn:], is_final and len(part.data) < _PIECE)
        if not data:
            return None
        self._starts_inside = False
        self._offset += torn + len(data)
        return data


_PATH = f"{WORKSPACE}/runs/{{run_id}}/logs"

ROUTES = (
    Route("GET", _PATH, list_run_logs, Permission.READ, "List the logs of a run", "logs", open_to_jobs=True),
    Route(
        "GET",
        f"{_PATH}/{{name:path}}/stream",
        stream_log,
        Permission.READ,
        "Follow a log by server-sent events",
        "logs",
        media_type="text/event-stream",
        statuses=(404,),
    ),
    Route(
        "GET",
        f"{_PATH}/{{name:path}}/search",
        search_run_log,
        Permission.READ,
        "Find lines of a log",
        "logs",
        statuses=(404,),
    ),
    Route(
        "GET",
        f"{_PATH}/{{name:path}}",
        get_log,
        Permission.READ,
        "Read a log from an offset on",
        "logs",
        open_to_jobs=True,
        media_type="application/octet-stream",
        statuses=(404,),
    ),
)
