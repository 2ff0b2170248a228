"""Waiting for a deployment or an image, with its log as it grows."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainmaster.client import open_line
from trainmaster.errors import WebserviceException, from_wire
from trainmaster.file_events import FileEvents
from trainmaster.folders import WorkspaceFolder
from trainmaster.waiting import GrowingText

Show = Callable[[str], None]

_ASK_SECONDS = 30.0
# Where nothing tells us that a log has grown.
_LOOK_SECONDS = 0.2


def follow(
    workspace: WorkspaceFolder,
    request: tuple[str, Mapping[str, Any]],
    settled: Callable[[Mapping[str, Any]], bool],
    log: Path,
    show: Show | None,
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
    show: Show | None,
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


def _show_until_answered(line: Any, events: FileEvents, text: GrowingText, show: Show) -> None:
    while True:
        events.watch(text.path.parent)
        _show_new(text, show)
        poll = select.poll()
        poll.register(line, select.POLLIN)
        if events.works:
            poll.register(events, select.POLLIN)
        ready = {handle for handle, _ in poll.poll(None if events.works else _LOOK_SECONDS * 1000)}
        if events.works and events.fileno() in ready:
            events.clear()
        if line.fileno() in ready:
            return


def _show_new(text: GrowingText, show: Show | None) -> None:
    for part in text.new() if show is not None else ():
        assert show is not None
        show(part)
