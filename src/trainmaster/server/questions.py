"""What tells requests apart whose answers are kept.

An answer of the dispatcher can be given again while the store has the same version. It must not depend on anything
else than the store and the question, so the question has all the rest: path, query and body, and the state of a run's
journals where values are read from them.
"""

from __future__ import annotations

import os
from functools import lru_cache

from trainmaster.dispatcher.api.operations import list_operations
from trainmaster.dispatcher.operation import is_from_journals, may_last
from trainmaster.job.errors import UserErrorException
from trainmaster.server.api.table import Operation, Route
from trainmaster.server.call import Call
from trainmaster.server.files.run_place import RunPlace
from trainmaster.server.files.settled import describe_settled

_LONGEST = 8 * 1024
_MOST_JOURNALS = 32


def may_keep(route: Route) -> bool:
    """Whether answers of a route can be kept at all."""
    if not isinstance(route.target, Operation) or route.changes:
        return False
    operation = list_operations()[route.operation]
    return may_last(operation) and ("run_id" in route.parameters or not is_from_journals(operation))


def identify_question(call: Call, body: bytes) -> bytes | None:
    """The question of a request to such a route; None if its answer must not be kept."""
    scope = call.request.scope
    parts = [scope["raw_path"], scope["query_string"], b"%d" % len(body), body]
    # What a job gets depends on its run, too.
    if call.caller.scope is not None or sum(map(len, parts)) > _LONGEST:
        return None
    if is_from_journals(list_operations()[call.route.operation]):
        journals = describe_journals(call)
        if journals is None:
            return None
        parts.append(journals)
    return b"\n".join(parts)


def describe_journals(call: Call) -> bytes | None:
    """Which journals a run has, and how long they are; None if that is not known quickly."""
    try:
        place = RunPlace.locate(call.workspace.folder, call.names["run_id"])
        if not place.is_quick:
            return None
        folder = f"{place.path}/journals"
        state = describe_settled(folder)
        if state is None:
            return None
        names = _list_names(folder, state)
        if len(names) > _MOST_JOURNALS:
            return None
        found = [(name, os.lstat(f"{folder}/{name}")) for name in names]
    except (OSError, UserErrorException):
        return None
    return repr([(name, facts.st_ino, facts.st_size) for name, facts in found]).encode()


@lru_cache(maxsize=1024)
def _list_names(folder: str, _state: tuple[int, ...]) -> tuple[str, ...]:
    """The names in a folder that has been in this state for a while: none is added without changing it."""
    return tuple(sorted(os.listdir(folder)))
