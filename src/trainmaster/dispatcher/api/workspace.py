"""Operations on the workspace itself and on the machine it is on, for clients that do not see its folder."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.environments import pythons
from trainmaster.environments.findings import Finding, examine_machine
from trainmaster.shared import identity, mlflow_database
from trainmaster.shared.machine import Machine, this_machine


class WorkspaceOperations:
    """Operations on the workspace."""

    def __init__(self, context: Context) -> None:
        self._folder = context.folder

    @operation("workspace.identity")
    def identity(self) -> dict[str, Any]:
        """The id and the name of the workspace, and what else is known about it."""
        return identity.read_identity(self._folder)

    @operation("workspace.change")
    def change(
        self,
        friendly_name: str | None = None,
        description: str | None = None,
        tags: Mapping[str, Any] | None = None,
        azure: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Set what is given, and return the whole identity. `azure` is recorded and has no effect."""
        given = {"friendly_name": friendly_name, "description": description, "tags": tags, "azure": azure}
        changes = {name: value for name, value in given.items() if value is not None}
        return identity.change_identity(self._folder, changes) if changes else self.identity()

    @operation("workspace.explain_missing")
    async def explain_missing(self, kind: Literal["experiment", "run"], name: str) -> str:
        """Where an experiment or run is that MLflow created outside of jobs; empty if there is none."""
        explain = mlflow_database.explain_run if kind == "run" else mlflow_database.explain_experiment
        return await asyncio.to_thread(explain, self._folder.path, name)

    @operation("workspace.machine")
    async def machine(self) -> Machine:
        """The CPUs, GPUs and Pythons of the dispatcher's machine, and its table of VM sizes."""
        machine = await asyncio.to_thread(this_machine, self._folder)
        found = await asyncio.to_thread(pythons.all_pythons)
        return replace(machine, python=pythons.running_version(), pythons=tuple(found))

    @operation("workspace.examine")
    async def examine(self) -> list[Finding]:
        """What the dispatcher's machine has and lacks, as `trainmaster doctor` shows it."""
        return await asyncio.to_thread(examine_machine, os.environ)

    @operation("workspace.disk")
    async def disk(self) -> dict[str, int]:
        """The `free` and `total` bytes of the workspace's disk."""
        usage = await asyncio.to_thread(shutil.disk_usage, self._folder.path)
        return {"free": usage.free, "total": usage.total}
