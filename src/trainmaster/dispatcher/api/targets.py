"""Operations on compute targets: those of the workspace, and this machine."""

from __future__ import annotations

import builtins
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.lookup import require_target
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.services.place import find_cluster
from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.helper.safe_names import RULE, is_plain
from trainmaster.shared.node_limits import check_limits
from trainmaster.shared.records import SshHostReport, TargetCheck, TargetRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_spec import ServiceRecord


class TargetOperations:
    """Operations on compute targets."""

    def __init__(self, context: Context, scheduler: Scheduler) -> None:
        self._context = context
        self._scheduler = scheduler
        self._folder = context.folder
        self._store = context.store
        self._activity = context.activity

    @operation("targets.list")
    def list(self) -> list[TargetRecord]:
        """All targets."""
        return list(self._scheduler.targets().values())

    @operation("targets.put")
    def put(self, target: Mapping[str, Any]) -> TargetRecord:
        """Add a target, or replace the one with its name."""
        record = from_plain(TargetRecord, target)
        _check(record)
        if record.engine == "kubernetes" and record.nodes:
            from trainmaster.engines.kubernetes.query import complete_target

            record = complete_target(record, self._folder.path)
        if record.engine == "slurm" and record.options.get("shared_folder") is not None:
            _check_is_shared(self._folder.path, str(record.options["shared_folder"]))
        known = self._store.targets.get(record.name)
        record = replace(record, created_at=known.created_at if known else time.time())
        self._store.targets.put(record)
        self._scheduler.targets_changed()
        return record

    @operation("targets.delete")
    def delete(self, name: str) -> None:
        """Delete a target; refused while runs use it."""
        require_target(self._scheduler.targets(), name)
        users = [run.id for run in self._store.runs.list_active() if run.target == name]
        users += [f"service {each.name}" for each in self._store.services.list_all() if self._runs_on(each, name)]
        if users:
            raise ComputeTargetException(
                f"target '{name}' is in use by {users[0]}",
                hint="Cancel its runs and delete its services first.",
            )
        self._store.targets.delete(name)
        self._scheduler.targets_changed()

    def _runs_on(self, service: ServiceRecord, name: str) -> bool:
        target = find_cluster(self._context, service)
        return target is not None and target.name == name

    @operation("targets.ask_hosts")
    async def ask_hosts(self, target: Mapping[str, Any], secret: str = "") -> builtins.list[SshHostReport]:
        """Ask the hosts of an SSH target for their properties, in the order of its nodes."""
        from trainmaster.engines.remote.host import hosts_of
        from trainmaster.engines.ssh.query import query_hosts

        record = from_plain(TargetRecord, target)
        with self._activity.working():
            found = await query_hosts(record, secret)
        return [
            SshHostReport(
                host=host.label,
                name=facts.host,
                address=facts.address,
                python=facts.python,
                version=".".join(map(str, facts.version)),
                cpus=facts.cpus,
                gpus=facts.gpus,
                memory_gb=round(facts.memory / 2**30, 1),
                free_gb=round(facts.free / 2**30, 1),
            )
            for host, facts in zip(hosts_of(record), found, strict=True)
        ]

    @operation("targets.ask_slurm")
    async def ask_slurm(self, target: Mapping[str, Any], options: builtins.list[str]) -> str:
        """The output of sinfo with these options, run where jobs of the target are submitted."""
        from trainmaster.engines.slurm.query import query_cluster

        with self._activity.working():
            return await query_cluster(from_plain(TargetRecord, target), ("sinfo", *options))

    @operation("targets.ask_kubernetes")
    async def ask_kubernetes(self, target: Mapping[str, Any], starts_pod: bool = False) -> builtins.list[TargetCheck]:
        """Try what runs on a Kubernetes target need: the server, the permissions and, with a pod, the image."""
        from trainmaster.engines.kubernetes.query import query_cluster

        with self._activity.working():
            return await query_cluster(from_plain(TargetRecord, target), self._folder.path, starts_pod)


def _check(record: TargetRecord) -> None:
    """Refuses names and sizes that no client of ours sends."""
    if not is_plain(record.name):
        raise ComputeTargetException(f"{record.name[:100]!r} cannot be the name of a target", hint=f"Use {RULE}.")
    for name in ("nodes", "cpus_per_node", "gpus_per_node"):
        if getattr(record, name) < 0:
            raise ComputeTargetException(f"{name} of a target must be at least 0, not {getattr(record, name)}")
    check_limits(record.options)


def _check_is_shared(workspace: Path, shared: str) -> None:
    """Refuses a shared folder that the workspace is not in: the nodes would not see its files."""
    folder = Path(shared)
    if not folder.is_absolute() or not folder.is_dir():
        raise ComputeTargetException(
            f"shared_folder {shared!r} is not the absolute path of a folder here",
            hint="Name a folder that this machine and all nodes see under the same path.",
        )
    if not workspace.resolve().is_relative_to(folder.resolve()):
        raise ComputeTargetException(
            f"the workspace {workspace} is not in the shared folder {folder}",
            cause="Every node must see the workspace's files under the same path.",
            hint=f"Create the workspace there: Workspace.create(name, path='{folder}/workspace').",
        )
