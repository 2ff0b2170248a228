"""The files by which agents know what to do, and by which others know how it went."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.shared.json_files import read_json


def write_plans(nodes: Nodes, plans: Sequence[dict[str, Any]]) -> None:
    """`plan.json` for the agent of every node and, under a launcher, `ranks.json` for its ranks."""
    for plan in plans:
        folder = nodes.folder.node(plan["node"])
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in plan_files(plan).items():
            _write_plan(folder / name, data)


def plan_files(plan: dict[str, Any]) -> dict[str, Any]:
    """What a node finds in its folder, by the names of the files; the plan comes last."""
    if "ranks" not in plan:
        return {"plan.json": plan}
    hosts = {"hosts": plan["hosts"]} if "hosts" in plan else {}
    return {"ranks.json": {"version": 1, **hosts, "ranks": plan["ranks"]}, "plan.json": plan}


def read_claim(folder: Path) -> dict[str, Any] | None:
    """Who carries out the plan of this node, if anybody does yet."""
    return read_json(folder / "agent.json")


def _write_plan(path: Path, data: dict[str, Any]) -> None:
    """Not flushed: after a power cut the agents of this machine are gone, and a lost plan is made again."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(data))
    temporary.rename(path)
