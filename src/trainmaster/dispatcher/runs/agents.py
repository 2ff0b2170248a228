"""Waits for the agents of a run. A node that fails ends the others; services end when no other process is left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.runs.outcome import has_succeeded
from trainmaster.engines import Engine, Nodes
from trainmaster.job.agent import cause
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json


async def wait_until_gone(engine: Engine, nodes: Nodes, spec: JobSpec, news: asyncio.Event) -> None:
    """Returns when all agents are gone. `news` is set when an agent reports that only services are left on its node."""
    if nodes.count == 1:
        # A single agent ends its services itself.
        await engine.wait_for_end(nodes, 0)
        return
    waiting: dict[asyncio.Task[Any], int] = {
        asyncio.create_task(engine.wait_for_end(nodes, number)): number for number in range(nodes.count)
    }
    try:
        await _wait_one_by_one(engine, nodes, spec, news, waiting)
    finally:
        for task in waiting:
            task.cancel()


async def _wait_one_by_one(
    engine: Engine, nodes: Nodes, spec: JobSpec, news: asyncio.Event, waiting: dict[asyncio.Task[Any], int]
) -> None:
    stopped = failed = False
    results: list[Mapping[str, Any] | None] = []
    while waiting:
        if not stopped and (failed or all(_is_served(spec, nodes.folder, number) for number in waiting.values())):
            stopped = True
            if any(result and cause.only_lost_peers(result.get("processes", ())) for result in results):
                await asyncio.wait(waiting, timeout=cause.PATIENCE_SECONDS)
            await engine.stop(nodes)
        news.clear()
        told: asyncio.Task[Any] = asyncio.create_task(news.wait())
        ended, _ = await asyncio.wait({*waiting, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        numbers = [waiting.pop(task) for task in ended if task in waiting]
        results = [read_json(nodes.folder.node(number) / "result.json") for number in numbers]
        failed = failed or any(not has_succeeded(result) for result in results)


def _is_served(spec: JobSpec, folder: RunFolder, number: int) -> bool:
    """Whether only services are left on a node."""
    return (folder.node(number) / "done.json").exists() or only_serves(spec, folder, number)


def only_serves(spec: JobSpec, folder: RunFolder, number: int) -> bool:
    """Whether a node has only services, which never end by themselves."""
    if spec.distribution.kind != "parameter_server":
        return False
    plan = read_json(folder.node(number) / "plan.json") or {}
    processes = plan.get("processes", [])
    return bool(processes) and all(process.get("service") for process in processes)
