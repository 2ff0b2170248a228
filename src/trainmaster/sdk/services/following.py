"""Waiting for a deployment or an image, with its log as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainmaster.job.errors import WebserviceException, from_wire
from trainmaster.sdk.connection import open_line
from trainmaster.sdk.run.waiting import GrowingText, Print
from trainmaster.shared.file_events import FileEvents
from trainmaster.shared.folders import WorkspaceFolder

_ASK_SECONDS = 30.0


def follow(
    workspace: WorkspaceFolder,
    request: tuple[str, Mapping[str, Any]],
    settled: Callable[[Mapping[str, Any]], bool],
    log: Path,
    show: Print | None,
    limit: float | None,
) -> dict[str, Any]:
    """Asks again and again (each question waits) until the answer is settled; meanwhile what the log gains is shown."""
    text = GrowingText(log)
    end = None if limit is None else time.monotonic() + limit
    with FileEvents() as events:
        while True:
            rest = _ASK_SECONDS if end is None else min(_ASK_SECONDS, end - time.monotonic())
            answer = _ask(workspace, request, max(0.0, rest), events, text, show)
            if settled(answer):
                if show is not None:
                    _show_new(text, show)
                return answer
            if end is not None and time.monotonic() >= end:
                raise WebserviceException(
                    f"it is not ready after {limit:g} seconds", hint="It goes on; wait again, or look at get_logs()."
                )


def _ask(
    workspace: WorkspaceFolder,
    request: tuple[str, Mapping[str, Any]],
    seconds: float,
    events: FileEvents,
    text: GrowingText,
    show: Print | None,
) -> dict[str, Any]:
    """One question, on a connection of its own; a dispatcher that dies meanwhile is replaced and asked again."""
    op, args = request
    while True:
        line = open_line(workspace)
        try:
            line.send({"id": 1, "op": op, "args": {**args, "seconds": seconds}})
            if show is not None:
                _show_until_answered(line, events, text, show)
            reply = line.receive()
        except (ConnectionError, EOFError):
            continue
        finally:
            line.close()
        if "error" in reply:
            raise from_wire(reply["error"])
        result: dict[str, Any] = reply["result"]
        return result


def _show_until_answered(line: Any, events: FileEvents, text: GrowingText, show: Print) -> None:
    answered = False
    while not answered:
        events.watch(text.path.parent)
        _show_new(text, show)
        answered = events.wait(line)


def _show_new(text: GrowingText, show: Print) -> None:
    for part in text.new():
        show(part)
