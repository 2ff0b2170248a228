"""The files that tell agents what to do, and the claims that they write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.job.agent import durable
from trainmaster.shared.json_files import read_json


def write_plans(nodes: Nodes, plans: Sequence[dict[str, Any]]) -> None:
    """Writes `plan.json` for the agent of every node and, under a launcher, `ranks.json` for its ranks."""
    for plan in plans:
        folder = nodes.folder.node(plan["node"])
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in plan_files(plan).items():
            # Without a flush: a power cut ends the agents of this machine, and a lost plan is written again.
            # For this account alone: on a server the variables of a process contain the token of the job.
            durable.write_unflushed(folder / name, json.dumps(data).encode(), mode=0o600)


def plan_files(plan: dict[str, Any]) -> dict[str, Any]:
    """The contents of the files in a node's folder, by their names. The plan comes last."""
    if "ranks" not in plan:
        return {"plan.json": plan}
    hosts = {"hosts": plan["hosts"]} if "hosts" in plan else {}
    return {"ranks.json": {"version": 1, **hosts, "ranks": plan["ranks"]}, "plan.json": plan}


def read_claim(folder: Path) -> dict[str, Any] | None:
    """The claim of the agent that executes the plan of this node; None if there is none yet."""
    return read_json(folder / "agent.json")
