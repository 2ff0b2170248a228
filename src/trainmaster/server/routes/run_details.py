"""What a page about one run shows and does beyond the run itself."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Operation, Route
from trainmaster.server.call import Call
from trainmaster.server.permissions import Permission
from trainmaster.shared.records import RunRecord

_RUN = f"{WORKSPACE}/runs/{{run_id}}"
_TAG = "runs"


async def rerun_run(
    call: Call,
    run_id: str,
    arguments: list[str] | None = None,
    command: list[str] | None = None,
    display_name: str | None = None,
    tags: Mapping[str, Any] | None = None,
) -> Any:
    """Submit a run again, with other arguments if they are given. Without any it is a retry."""
    origin = await call.ask("runs.get", run_id=run_id)
    new_id = f"{origin['experiment'][:200]}_{int(time.time())}_{os.urandom(4).hex()}"
    edits = {"arguments": arguments, "command": command, "display_name": display_name, "tags": tags}
    return await call.ask("runs.rerun", run_id=run_id, new_id=new_id, **edits)


ROUTES: Sequence[Route] = (
    Route(
        "POST",
        f"{_RUN}/rerun",
        rerun_run,
        Permission.CONTRIBUTE,
        "Submit a run again, as it was or with other arguments",
        _TAG,
        answer=RunRecord,
        largest_body=16 * MEGABYTE,
    ),
    Route(
        "GET",
        f"{_RUN}/explanation",
        Operation("runs.explain"),
        Permission.READ,
        "What a run waits for, or why it failed",
        _TAG,
    ),
    Route(
        "GET",
        f"{_RUN}/lineage",
        Operation("runs.lineage"),
        Permission.READ,
        "Where a run comes from, and what came of it",
        _TAG,
    ),
    Route(
        "GET",
        f"{WORKSPACE}/models/{{name}}/versions/{{version}}/lineage",
        Operation("models.lineage"),
        Permission.READ,
        "Where a model comes from, and what uses it",
        "models",
    ),
)
