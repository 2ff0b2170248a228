"""What the ranks under a launcher left: which failed first, and the table of all processes of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.local import read_json
from trainmaster.folders import RunFolder
from trainmaster.node.tail import tail


def with_ranks(result: Mapping[str, Any] | None, node: Path) -> Mapping[str, Any] | None:
    """The result of a node whose launcher started ranks, with the rank that failed first in the launcher's place."""
    if result is None or not (node / "ranks.json").exists():
        return result
    plans = (read_json(node / "ranks.json") or {}).get("ranks", [])
    noted = [read_json(node / "ranks" / f"{plan['rank']}.json") for plan in plans]
    ended = [record for record in noted if record and record.get("ended_at")]
    processes = ended or result["processes"]
    failed = [record for record in ended if record.get("exit_code") != 0]
    if not failed or not result.get("first_failure"):
        return {**result, "processes": processes}
    first = min(failed, key=lambda record: record["ended_at"])
    plan = plans[first["rank"]]
    failure = {
        "rank": first["rank"],
        "node": int(plan["env"].get("NODE_RANK", 0)),
        "exit_code": first.get("exit_code"),
        "signal": first.get("signal"),
        "out_of_memory": first.get("out_of_memory"),
        "tail": tail(os.fsencode(plan["log"])),
    }
    return {**result, "processes": processes, "first_failure": failure}


def write_process_table(folder: RunFolder, results: Sequence[Mapping[str, Any] | None]) -> None:
    """`process_info.json`: rank, node, pid, start and end of every process of a distributed run."""
    table = []
    for number, result in enumerate(results):
        running = read_json(folder.node(number) / "running.json") or {}
        pids = {each["rank"]: each.get("pid") for each in running.get("processes", [])}
        for record in (result or {}).get("processes", []):
            table.append(
                {
                    **record,
                    "node": number,
                    "pid": record.get("pid", pids.get(record["rank"])),
                    "started_at": running.get("started_at"),
                }
            )
    (folder.logs / "process_info.json").write_text(json.dumps(table, indent=1))
