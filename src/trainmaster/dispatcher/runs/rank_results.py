"""The results of single ranks: how each ended and its last lines; and the table of all processes of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.plans import read_claim
from trainmaster.job.agent import cause
from trainmaster.job.agent.tail import tail
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json

# Fields that are only needed to find the cause of a failure, and are left out of the table of processes.
_FOR_THE_CAUSE = (
    "told",
    "raised",
    "lost_peer",
    "wrote_at",
    "memory_ran_out",
    "memory_limit_of",
    "stack",
    "tail",
    "service",
)


def with_ranks(result: Mapping[str, Any] | None, node: Path) -> Mapping[str, Any] | None:
    """The result of a node with the records of its ranks, which replace the record of a launcher such as mpirun."""
    if result is None:
        return None
    plan = read_json(node / "plan.json") or {}
    launched = (read_json(node / "ranks.json") or {}).get("ranks", [])
    plans = {each["rank"]: each for each in launched or plan.get("processes", [])}
    if not launched:
        return {
            **result,
            "processes": [_complete_record(record, plans, result) for record in result.get("processes", [])],
        }
    noted = [read_json(node / "ranks" / f"{each['rank']}.json") for each in launched]
    ranks = [_complete_record(record, plans, result) for record in noted if record]
    failed = _launcher(result, node)
    refused = next((record["error"] for record in ranks if record.get("error")), None)
    if refused and failed:
        return {**result, "processes": ranks, "reason": "error", "error": refused, "first_failure": None}
    return {**result, "processes": ranks, "first_failure": failed}


def _complete_record(
    record: Mapping[str, Any], plans: Mapping[int, Mapping[str, Any]], result: Mapping[str, Any]
) -> dict[str, Any]:
    """Completes the record of a rank from its plan, and with its last lines if it may be the cause of a failure."""
    plan = plans.get(record["rank"])
    if plan is None:
        return dict(record)
    known = {**record, "node": int(plan["env"].get("TRAINMASTER_NODE", 0)), "service": bool(plan.get("service"))}
    log = os.fsencode(plan["log"])
    if not record.get("ended_at") and not record.get("error"):
        # No process was left to record its end: it was killed together with the others.
        known |= {"told": True, "ended_at": result.get("ended_at"), **cause.last_words(log)}
    if cause.has_failed(known) and (not known.get("told") or known.get("raised")):
        known["tail"] = tail(log)
    return known


def _launcher(result: Mapping[str, Any], node: Path) -> Mapping[str, Any] | None:
    """The failure of the launcher itself, which matters only if no rank is known to have failed."""
    failure = result.get("first_failure")
    return {**failure, "launcher": "mpirun", "tail": tail(os.fsencode(node / "mpirun.log"))} if failure else None


def write_process_table(folder: RunFolder, results: Sequence[Mapping[str, Any] | None]) -> None:
    """`process_info.json`: rank, node, host, pid, start and end of every process of a distributed run."""
    table = []
    for number, result in enumerate(results):
        running = read_json(folder.node(number) / "running.json") or {}
        claim = read_claim(folder.node(number)) or {}
        pids = {each["rank"]: each.get("pid") for each in running.get("processes", [])}
        for record in (result or {}).get("processes", []):
            row = {
                "node": number,
                "host": claim.get("host") or os.uname().nodename,
                "pid": pids.get(record["rank"]),
                "started_at": running.get("started_at"),
                **record,
            }
            table.append({name: value for name, value in row.items() if name not in _FOR_THE_CAUSE})
    beneath.write_text(folder.path, "files/azureml-logs/process_info.json", json.dumps(table, indent=1))
