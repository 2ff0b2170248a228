"""The connection of a program to a workspace on a server: operations, and the states of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol, Self

from trainmaster.sdk.backend.backend import RunNews
from trainmaster.sdk.backend.remote.events import Event, EventStream
from trainmaster.sdk.backend.remote.http import HttpClient, Request, join_path
from trainmaster.sdk.backend.remote.server import workspace_path

# What the server may need beyond the time that an operation is asked to wait.
_MARGIN_SECONDS = 60.0


class Ahead(Protocol):
    """What has to reach the server before an operation is called."""

    def deliver(self) -> None:
        """Sends what this program has logged so far, so that the answer takes it into account."""

    def finish(self, args: dict[str, Any]) -> Any:
        """Calls `runs.finish` after everything else of the run; kept for later if the network is gone."""

    def note_created(self, records: list[dict[str, Any]]) -> None:
        """Remembers the runs that this program created."""

    def get(self, args: dict[str, Any]) -> Any:
        """Calls `runs.get`. If the network is gone, a run of this program is as it was."""


class RemoteConnection:
    """Calls the operations of one workspace; safe to share between threads and across a fork."""

    def __init__(self, client: HttpClient, workspace: str) -> None:
        self.client = client
        self.workspace = workspace
        self.path = workspace_path(workspace)
        self.ahead: Ahead | None = None

    def call(self, op: str, **args: Any) -> Any:
        """The result of operation `op`. An error of the operation is raised."""
        if self.ahead is None:
            return self.send(op, args)
        if op == "runs.finish":
            return self.ahead.finish(args)
        self.ahead.deliver()
        if op == "runs.get":
            return self.ahead.get(args)
        result = self.send(op, args)
        if op == "runs.create":
            self.ahead.note_created(result)
        return result

    def send(self, op: str, args: dict[str, Any], key: str = "", **limits: Any) -> Any:
        """The result of operation `op`, without anything before it."""
        wait = args.get("seconds")
        if isinstance(wait, int | float):
            limits.setdefault("seconds", wait + _MARGIN_SECONDS)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        path = f"{self.path}/operations{join_path(op)}"
        answer = self.client.request(Request("POST", path, headers=headers, body=json.dumps(args).encode(), **limits))
        return answer.json()["result"]

    def watch(self, run_id: str) -> RemoteWatch:
        """The states of one run, from now to its end."""
        return RemoteWatch(open_events(self, run_id, ()))

    def close(self) -> None:
        """Closes idle connections; the next call opens another."""
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RemoteWatch:
    """The states of one run, from now to its end."""

    def __init__(self, events: EventStream) -> None:
        self._events = events

    def __iter__(self) -> Iterator[RunNews]:
        """The states until the run has ended."""
        while True:
            event = self._events.next()
            news = as_news(event) if event is not None else None
            if news is not None:
                yield news
                if news["ended"]:
                    return

    def close(self) -> None:
        """Ends the stream."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_events(connection: RemoteConnection, run_id: str, kinds: tuple[str, ...]) -> EventStream:
    """The events of a run: its states, and that its files of these kinds may have grown."""
    path = f"{connection.path}/runs{join_path(run_id)}/events"
    return EventStream(connection.client, path, {"files": ",".join(kinds) or None}, _is_end)


def as_news(event: Event) -> RunNews | None:
    """The state that an event reports; None for an event about files."""
    if event.kind != "state":
        return None
    data = json.loads(event.data)
    return RunNews(run_id=data["run_id"], status=data["status"], ended=data["ended"])


def _is_end(event: Event) -> bool:
    news = as_news(event)
    return news is not None and news["ended"]
