"""Following the objects of one path: a list, then one watch, for as long as the caller wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from trainmaster.engines.kubernetes.api import Api, Object
from trainmaster.engines.kubernetes.api_errors import ApiError, explain_answer
from trainmaster.engines.kubernetes.connection import LineReader, Response
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.retry import Backoff

# The server ends a watch after this time; a random part keeps many watches from ending together.
_WATCH_SECONDS = 300
# A watch that ended sooner than this is followed by a pause.
_SHORT_SECONDS = 5.0
_GRACE_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_LINE_BYTES = 64 * 1024 * 1024
# Waiting does not help against these.
_WRONG_REQUEST = frozenset({400, 404, 405, 406, 415, 422})
_Change = Literal["added", "modified", "deleted"]
_KINDS: dict[str, _Change] = {
    "ADDED": "added",
    "MODIFIED": "modified",
    "DELETED": "deleted",
}


@dataclass(frozen=True)
class Event:
    """A change of one object, or news about all of them.

    reset     `objects` are all there are; whatever is not among them is gone
    added, modified, deleted     `objects` has the one object
    away      the server does not answer or refuses: `error` says why; said once, until "back" or "reset"
    back      the server answers again, and nothing was missed
    """

    kind: Literal["reset", "added", "modified", "deleted", "away", "back"]
    objects: tuple[Any, ...] = ()
    error: ComputeTargetException | None = None


async def watch(
    api: Api,
    path: str,
    labels: str = "",
    fields: str = "",
    reduce: Callable[[Object], Any] = lambda item: item,
    watch_seconds: int = _WATCH_SECONDS,
) -> AsyncGenerator[Event, None]:
    """Yields "reset" with all objects, then every change. It ends only with an error that waiting cannot help.

    `reduce` makes of each object what the caller needs of it, so that no whole objects are kept.
    """
    follower = _Follower(api, path, labels, fields, watch_seconds)
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
    is_away = False
    while True:
        try:
            if not follower.version:
                objects = await follower.list_all(reduce)
                is_away = False
                yield Event("reset", objects)
            async with follower.connect() as changes:
                if is_away:
                    is_away = False
                    yield Event("back")
                async for kind, item in changes:
                    yield Event(kind, (reduce(item),))
        except ComputeTargetException as error:
            if isinstance(error, ApiError) and error.status in _WRONG_REQUEST:
                raise
            if not is_away and not isinstance(error, _Expired):
                is_away = True
                yield Event("away", error=error)
        seconds, is_useful = follower.take_outcome()
        if is_useful:
            backoff.reset()
        if seconds < _SHORT_SECONDS:
            await backoff.sleep()


class _Expired(ApiError):
    """The server has forgotten the version from which the watch should go on."""


class _Follower:
    """The place in the history of the objects up to which everything is known."""

    def __init__(self, api: Api, path: str, labels: str, fields: str, seconds: int) -> None:
        self.version = ""
        self._api = api
        self._path = path
        self._selectors = {"labelSelector": labels, "fieldSelector": fields}
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._connected_at: float | None = None
        self._has_heard = False

    async def list_all(self, reduce: Callable[[Object], Any]) -> tuple[Any, ...]:
        labels, fields = self._selectors.values()
        objects, self.version = await self._api.list_objects(self._path, labels, fields, reduce)
        return tuple(objects)

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncIterator[tuple[_Change, Object]]]:
        """The changes after the version, until the server ends the watch."""
        duration = self._seconds + random.randrange(self._seconds // 4 + 1)
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": duration,
            "resourceVersion": self.version,
            **self._selectors,
        }
        try:
            async with self._api.stream(self._path, **query) as response:
                self._connected_at = self._loop.time()
                yield self._changes(response, self._loop.time() + duration + _GRACE_SECONDS)
        except ApiError as error:
            if error.status != HTTPStatus.GONE:
                raise
            self.version = ""
            raise _Expired(error.headline, error.cause, status=error.status, reason=error.reason) from None

    async def _changes(self, response: Response, deadline: float) -> AsyncIterator[tuple[_Change, Object]]:
        lines = LineReader(response, _LINE_BYTES)
        while True:
            # Not longer: no yield may be inside of a timeout.
            async with asyncio.timeout_at(max(deadline, self._loop.time() + 1)):
                line = await lines.read()
            if not line:
                return
            kind, item = _read_line(line)
            if kind == "ERROR":
                # Whatever it is, the watch cannot go on from this version.
                self.version = ""
                status = int(item.get("code") or 0)
                raise explain_answer("GET", self._path, status, {}, json.dumps(item).encode())
            self.version = item["metadata"]["resourceVersion"]
            self._has_heard = True
            if kind in _KINDS:
                yield _KINDS[kind], item

    def take_outcome(self) -> tuple[float, bool]:
        """How long the last watch was connected, and whether it was worth it; asked once for each."""
        began, self._connected_at = self._connected_at, None
        has_heard, self._has_heard = self._has_heard, False
        duration = 0.0 if began is None else self._loop.time() - began
        return duration, has_heard or duration >= _SHORT_SECONDS


def _read_line(line: bytes) -> tuple[str, Object]:
    try:
        change = json.loads(line)
        kind, item = change["type"], change["object"]
        if kind != "ERROR":
            item["metadata"]["resourceVersion"]
    except (ValueError, KeyError, TypeError):
        raise ConnectionError("the server sent something that is not a change") from None
    return kind, item
