"""Reads server-sent events for tests, over a plain connection."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.conftest import PATIENCE
from tests.server_process import ServerProcess


@dataclass(frozen=True)
class Event:
    kind: str
    data: Any
    id: str


class EventReader:
    """One stream of events."""

    def __init__(self, server: ServerProcess, path: str, headers: Mapping[str, str] | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}", **(headers or {})})
        self.answer = self._connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.getheader("content-type") == "text/event-stream; charset=utf-8"

    def __iter__(self) -> Iterator[Event]:
        """The events up to the end of the stream; ConnectionError or IncompleteRead if it is cut."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if not text:
                if "event" in fields:
                    yield Event(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
                fields = {}
            elif not text.startswith(":"):
                name, _, value = text.partition(": ")
                fields[name] = value

    def next(self, kind: str) -> Event:
        """The next event of a kind; others are passed over."""
        return next(event for event in self if event.kind == kind)

    def close(self) -> None:
        # The response holds the socket too.
        self.answer.close()
        self._connection.close()

    def __enter__(self) -> EventReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
