"""Fetches records of runs from a workspace: one by its id, or all that match v1's filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import RunNotFoundException
from trainmaster.job.script.labels import as_filter
from trainmaster.shared.records import RunQuery, RunRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_PAGE = 100


def fetch(workspace: Workspace, run_id: str) -> RunRecord:
    """The run with this id."""
    if not isinstance(run_id, str) or not run_id.isprintable():
        raise RunNotFoundException(f"{run_id!r:.100} is not the id of a run")
    return from_plain(RunRecord, workspace.connection.call("runs.get", run_id=run_id))


def query(
    type: str | None,
    tags: str | Mapping[str, Any] | None,
    properties: str | Mapping[str, Any] | None,
    status: str | Sequence[str] | None,
    **of: Any,
) -> RunQuery:
    """v1's filters as a query; `of` limits it to an experiment, a target or a parent."""
    statuses = (status,) if isinstance(status, str) else tuple(status or ())
    return RunQuery(
        type=type, tags=as_filter(tags), properties=as_filter(properties), statuses=statuses, limit=_PAGE, **of
    )


def pages(workspace: Workspace, query: RunQuery) -> Iterator[RunRecord]:
    """All runs of a query, newest first, fetched page by page."""
    while True:
        found = [from_plain(RunRecord, each) for each in workspace.connection.call("runs.list", query=to_plain(query))]
        yield from found
        if len(found) < query.limit:
            return
        query = replace(query, before_seq=found[-1].seq)
