"""Server-sent events: news from the server as it happens, over a connection that is opened again when it is lost."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from trainmaster.job.errors import ServiceException, TrainmasterError
from trainmaster.sdk.backend.remote.answers import UnavailableException
from trainmaster.sdk.backend.remote.http import LOST, HttpClient, Request, Stream
from trainmaster.sdk.backend.remote.notices import notify
from trainmaster.shared.retry import Backoff

# The server sends a heartbeat every 15 seconds. Without three of them the connection is lost.
_SILENCE_SECONDS = 45.0
# A laptop may be closed for a while, and the server restarted.
_LOST_SECONDS = 900.0


@dataclass(frozen=True)
class Event:
    """One event: what kind of news, its text, and the id from which the server can continue."""

    kind: str
    data: str
    id: str = ""


def parse_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """The events in the lines of a stream. Comments, which are heartbeats, are left out.

    >>> list(parse_events([b": hello\\n", b"event: state\\n", b"id: 7\\n", b"data: {}\\n", b"\\n"]))
    [Event(kind='state', data='{}', id='7')]
    """
    kind, data, event_id = "message", list[str](), ""
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield Event(kind, "\n".join(data), event_id)
            kind, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif name == "id":
            event_id = value


class EventStream:
    """The events of one address, in order. `next` waits for the next one; a thread reads them.

    A thread, because a socket that timed out while it was read cannot be read again, and because TLS holds bytes back
    from select.
    """

    def __init__(
        self,
        client: HttpClient,
        path: str,
        query: Mapping[str, Any],
        is_last: Callable[[Event], bool] = lambda event: False,
    ) -> None:
        """`is_last` recognises the event after which the server has no more to say."""
        self._client = client
        self._path = path
        self._query = query
        self._is_last = is_last
        self._found: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        self._stream: Stream | None = None
        self._closed = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="trainmaster-events", daemon=True)
        self._thread.start()

    def next(self, seconds: float | None = None) -> Event | None:
        """The next event; None if there is none within `seconds`. Raises EOFError after the last event."""
        try:
            found = self._found.get(timeout=seconds) if seconds is None or seconds > 0 else self._found.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            self._found.put(found)
            raise found
        if found is None:
            self._found.put(None)
            raise EOFError("the stream of events has ended")
        return found

    def close(self) -> None:
        """Ends the stream."""
        self._closed.set()
        with self._guard:
            stream = self._stream
        if stream is not None:
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            self._follow()
        except TrainmasterError as error:
            self._found.put(error)
        except BaseException as error:  # noqa: BLE001 (the thread that waits for events has to hear of it)
            self._found.put(ServiceException("the events of the server cannot be read", cause=repr(error)))
        else:
            self._found.put(None)

    def _follow(self) -> None:
        backoff = Backoff(first=0.05, longest=5.0)
        last_id, lost_since, has_noticed = "", None, False
        while not self._closed.is_set():
            try:
                for event in self._connect(last_id):
                    backoff.reset()
                    lost_since = None
                    last_id = event.id or last_id
                    self._found.put(event)
                    if self._is_last(event):
                        return
            except (*LOST, UnavailableException, ValueError, AttributeError) as lost:
                # ValueError and AttributeError: http.client raises them if another thread closed the connection.
                if self._closed.is_set():
                    return
                now = time.monotonic()
                lost_since = lost_since or now
                if now - lost_since > _LOST_SECONDS:
                    raise
                if not has_noticed and now - lost_since > 3.0:
                    notify(f"the connection to {self._client.address} is lost; trying again ({lost})")
                    has_noticed = True
            self._closed.wait(backoff.next_pause())

    def _connect(self, last_id: str) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        request = Request("GET", self._path, self._query, headers, seconds=_SILENCE_SECONDS, patience=0.0)
        stream = self._client.open(request)
        with self._guard:
            self._stream = stream
        try:
            if self._closed.is_set():
                return
            yield from parse_events(_lines(stream))
        finally:
            stream.close()


def _lines(stream: Stream) -> Iterator[bytes]:
    while line := stream.readline():
        yield line
