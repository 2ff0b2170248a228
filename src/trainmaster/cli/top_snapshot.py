"""What `trainmaster top` shows: asked of the dispatcher, here or on a server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trainmaster.sdk.display.top_frame import RunLine, Snapshot, Use
from trainmaster.shared.records import ACTIVE, LatestUse, RunQuery, RunRecord, TargetRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_MOST_RUNS = 200
_PREFIX, _OF_NODE = "system/", "system/node/"


def take_snapshot(workspace: Workspace) -> Snapshot:
    """The workspace now."""
    call = workspace.connection.call
    query = RunQuery(statuses=tuple(sorted(ACTIVE)), include_children=True, limit=_MOST_RUNS)
    records = [from_plain(RunRecord, each) for each in call("runs.list", query=to_plain(query))]
    targets = [from_plain(TargetRecord, each) for each in call("targets.list")]
    measured = [record.id for record in records if record.status == "Running"]
    latest = [from_plain(LatestUse, each) for each in call("runs.latest_use", run_ids=measured)]
    uses = {each.run_id: each for each in latest}
    present = call("workspace.use")
    now = {each["run_id"]: each for each in present["runs"]}
    runs = [_make_line(record, uses.get(record.id), now.get(record.id)) for record in reversed(records)]
    counts = [_count_nodes(target, records) for target in targets]
    return Snapshot(workspace.name, time.time(), present["machine"], tuple(counts), tuple(runs))


def snapshot_as_json(snapshot: Snapshot) -> dict[str, Any]:
    """The keys of a snapshot."""
    runs = []
    for run in snapshot.runs:
        facts = {key: value for key, value in asdict(run).items() if key not in ("ranks", "nodes")}
        ranks = [{"rank": rank, **asdict(use)} for rank, use in run.ranks.items()]
        nodes = [{"node": node, **values} for node, values in run.nodes.items()]
        runs.append({**facts, "gpu_percent": run.gpu_percent, "ranks": ranks, "nodes": nodes})
    return {
        "workspace": snapshot.workspace,
        "at": snapshot.at,
        "machine": snapshot.machine,
        "targets": list(snapshot.targets),
        "runs": runs,
    }


def _count_nodes(target: TargetRecord, records: list[RunRecord]) -> dict[str, Any]:
    mine = [record for record in records if record.target == target.name]
    return {
        "name": target.name,
        "engine": target.engine,
        "nodes": target.nodes,
        "busy": sum(len(record.nodes) for record in mine),
        "waiting": sum(1 for record in mine if not record.nodes),
    }


def _make_line(record: RunRecord, latest: LatestUse | None, now: Mapping[str, Any] | None) -> RunLine:
    ranks = _split(latest, is_of_node=False)
    uses = {rank: Use(**{name: values.get(name) for name in asdict(Use())}) for rank, values in ranks.items()}
    whole = _add_up(uses)
    if latest is None and now is not None:
        # Not measured, or not yet; the dispatcher looks at the processes of its own machine.
        whole = Use(now["cpu_percent"], now["memory"] / (1 << 30), now["processes"])
    return RunLine(
        record.id,
        record.experiment,
        str(record.status),
        record.target,
        record.submitted_by,
        record.started_at or record.created_at,
        record.waiting_for,
        latest.at if latest else None,
        whole,
        uses,
        _split(latest, is_of_node=True),
    )


def _split(latest: LatestUse | None, is_of_node: bool) -> dict[int, dict[str, float]]:
    """By rank, or by node, the values without the prefix of their names."""
    found: dict[int, dict[str, float]] = {}
    prefix = _OF_NODE if is_of_node else _PREFIX
    for name, values in latest.values.items() if latest else ():
        if name.startswith(_OF_NODE) == is_of_node:
            for number, value in values.items():
                found.setdefault(int(number), {})[name.removeprefix(prefix)] = value
    return dict(sorted(found.items()))


def _add_up(uses: Mapping[int, Use]) -> Use:
    sums: dict[str, float | None] = {}
    for name in asdict(Use()):
        known = [value for value in (getattr(use, name) for use in uses.values()) if value is not None]
        sums[name] = sum(known) if known else None
    return Use(**sums)
