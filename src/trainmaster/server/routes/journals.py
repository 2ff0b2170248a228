"""What a program on another machine logs to a run: the bytes of its journal, in order."""

from __future__ import annotations

from typing import Any

from anyio import to_thread

from trainmaster.job.helper.safe_names import RULE, is_plain
from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.files.run_place import AppendConflictError, AppendGapError
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import LARGEST_APPEND, answer_gap, find_run, read_append, refuse_other_bytes

_LONGEST_WRITER = 200


async def append_journal(call: Call, run_id: str, writer: str, offset: int) -> Any:
    """Add the body to the journal of one writer, if it starts at `offset`; answers the journal's size.

    Bytes that have arrived before are not added again. If bytes in between are missing, the answer is 409 with the
    size.
    """
    if not is_plain(writer, _LONGEST_WRITER):
        raise refuse(400, f"{writer[:100]!r} cannot be the name of a writer", hint=f"Use {RULE}.")
    if offset < 0:
        raise refuse(400, "the offset cannot be negative")
    place = await find_run(call, run_id)
    data = await read_append(call)
    try:
        return {"size": await to_thread.run_sync(place.append_journal, writer, offset, data)}
    except AppendGapError as error:
        return answer_gap(call, error)
    except AppendConflictError:
        raise refuse_other_bytes() from None


ROUTES = (
    Route(
        "PUT",
        f"{WORKSPACE}/runs/{{run_id}}/journals/{{writer}}",
        append_journal,
        Permission.CONTRIBUTE,
        "Add to what a program logs to a run",
        "runs",
        open_to_jobs=True,
        largest_body=LARGEST_APPEND,
        streams_body=True,
        is_counted=True,
        statuses=(404, 409),
    ),
)
