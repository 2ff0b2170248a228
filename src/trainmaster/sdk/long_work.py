"""Long work of the dispatcher: started and followed by repeating one request, with what its log gains shown."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import from_wire
from trainmaster.shared.log_texts import LogPlace
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

Show = Callable[[str], None]


def follow_work(workspace: Workspace, op: str, show: Show | None = None, **args: Any) -> Any:
    """The result of an operation that takes `key`, `log` and `seconds`. Its error is raised.

    Each request has a connection of its own time: other threads can use that of the workspace meanwhile.
    """
    key, place = uuid.uuid4().hex, to_plain(LogPlace())
    with workspace.backend.open_connection() as connection:
        while True:
            news = connection.call(op, key=key, log=place, **args)
            place = news["log"]["next"]
            if show is not None and news["log"]["text"]:
                show(news["log"]["text"])
            if not news["done"]:
                continue
            if news["error"]:
                raise from_wire(news["error"])
            return news["result"]
