"""The operation `runs.plan`: what would happen if a job were submitted now. Nothing is written.

`python -m trainmaster.dispatcher.runs.dry_run <workspace folder>` answers for a workspace that does not exist yet. It
reads `{"experiment", "spec"}` from standard input and prints `{"result"}` or `{"error"}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.accepting import as_on
from trainmaster.dispatcher.runs.capacity import check_fits
from trainmaster.dispatcher.runs.containers import plan_container, require_engine
from trainmaster.dispatcher.runs.decisions import Occupation, decide
from trainmaster.dispatcher.runs.lookup import require_target
from trainmaster.dispatcher.runs.preparing import Preparation
from trainmaster.dispatcher.runs.quotas import QuotaBook
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.start import agent_plans
from trainmaster.dispatcher.runs.throw_away import target_for
from trainmaster.dispatcher.runs.waiting import Request, find_time_limit, request_of
from trainmaster.dispatcher.sweeps.driver import is_sweep
from trainmaster.engines import Engine, EngineContext, Nodes, make_engine
from trainmaster.environments import prefix
from trainmaster.job.errors import TrainmasterError
from trainmaster.launch import Launch, agent_count, most_processes, plan_launch, port_count
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import local_target
from trainmaster.shared.job_spec import THROW_AWAY, JobSpec, load_spec
from trainmaster.shared.records import RunRecord, Status, TargetRecord
from trainmaster.shared.vm_sizes import read_sizes

_RUN_ID = "RUN_ID"
_SNAPSHOT_ID = "SNAPSHOT_ID"


@dataclass(frozen=True)
class Situation:
    """The state of a workspace at one moment."""

    folder: WorkspaceFolder
    engine: Callable[[str], Engine]
    """The engine of this name."""
    occupation: Occupation
    queue: Sequence[Request] = ()
    quotas: QuotaBook | None = None
    penalties: Mapping[str, float] = field(default_factory=dict)

    @property
    def targets(self) -> Mapping[str, TargetRecord]:
        """All targets by name."""
        return self.occupation.targets


def current_situation(context: Context, scheduler: Scheduler) -> Situation:
    """The workspace of a dispatcher at this moment."""
    active = context.store.runs.list_active()
    without_nodes = [run for run in active if run.spec and not run.nodes and not is_sweep(run)]
    waiting = [request_of(run, load_spec(run.spec)) for run in without_nodes]
    return Situation(
        context.folder,
        context.engines.get,
        scheduler.occupation(),
        waiting,
        scheduler.quotas(),
        scheduler.penalties(time.time()),
    )


def plan_run(spec: JobSpec, experiment: str, now: Situation) -> dict[str, Any]:
    """Returns `{"target", "environment", "processes"}`; a job that can never run raises the error of submit."""
    target = _find_target(spec, now)
    spec = as_on(target, spec)
    return {
        "target": {"name": target.name, "nodes": target.nodes, **_find_room(spec, target, now)},
        "environment": _describe_environment(spec, now.folder),
        "processes": _plan_processes(spec, experiment, target, now),
    }


def _find_target(spec: JobSpec, now: Situation) -> TargetRecord:
    own = target_for(_RUN_ID, spec, read_sizes(now.folder)) if spec.target == THROW_AWAY else None
    target = own or require_target(now.targets, spec.target)
    check_fits(spec, target)
    return target


def _find_room(spec: JobSpec, target: TargetRecord, now: Situation) -> dict[str, Any]:
    """Whether the run would start now; if not, what it would wait for."""
    engines_queue = (target.name,) if now.engine(target.engine).queues else ()
    at = time.time()
    request = Request(
        _RUN_ID,
        target.name,
        spec.node_count,
        seq=1 + max((each.seq for each in now.queue), default=0),
        priority=spec.priority,
        submitted_at=at,
        seconds=find_time_limit(spec),
    )
    targets = {**now.targets, target.name: target}
    occupation = replace(now.occupation, targets=targets, queue_themselves=engines_queue)
    decision = decide([*now.queue, request], occupation, now.quotas, now.penalties, at)
    reason = decision.reasons.get(_RUN_ID)
    return {"has_room": reason is None, "waiting_for": reason}


def _describe_environment(spec: JobSpec, folder: WorkspaceFolder) -> dict[str, Any]:
    environment = spec.environment
    found = prefix.find(environment, folder, "", _environments_variable())
    if environment.user_managed:
        python = found.python if found else environment.interpreter
        return {"kind": "user-managed", "digest": None, "ready": True, "python": python, "packages": []}
    return {
        "kind": "built",
        "digest": prefix.digest(environment),
        "ready": found is not None,
        "python": prefix.python_version(environment),
        "packages": [*environment.pip_packages, *environment.conda_packages],
    }


def _environments_variable() -> str:
    return os.environ.get("TRAINMASTER_ENVIRONMENTS", "")


def _plan_processes(spec: JobSpec, experiment: str, target: TargetRecord, now: Situation) -> list[dict[str, Any]]:
    """Command line and variables of every process, from the launch plan."""
    folder = now.folder
    prepared = _prepare(spec, folder)
    if not folder.identity.exists():
        return _without_workspace(spec, folder, prepared)
    record = RunRecord(
        id=_RUN_ID,
        experiment=experiment,
        status=Status.NOT_STARTED,
        created_at=time.time(),
        target=target.name,
        nodes=tuple(range(spec.node_count)),
    )
    nodes = Nodes(_RUN_ID, folder.run(_RUN_ID), agent_count(spec), target, record.nodes, most_processes(spec))
    place = now.engine(target.engine).place(nodes)
    # No snapshot is taken, so it has no id.
    named = replace(spec, snapshot_id=_SNAPSHOT_ID)
    plans = agent_plans(record, named, prepared, place, folder, _some_ports(spec))
    return [
        _describe_process(plan["node"], process)
        for plan in plans
        for process in (*plan["processes"], *plan.get("ranks", ()))
    ]


def _prepare(spec: JobSpec, folder: WorkspaceFolder) -> Preparation:
    path = spec.environment_variables.get("PATH") or spec.inherited_variables.get("PATH", "")
    ready = prefix.find(spec.environment, folder, path, _environments_variable())
    found = ready or prefix.open_prefix(folder.environments / prefix.digest(spec.environment), path)
    container = None
    if spec.environment.container is not None:
        container = plan_container(require_engine(), found, folder.run(_RUN_ID), folder)
    return Preparation(found, str(folder.path / "kits" / "KIT"), None, container)


def _without_workspace(spec: JobSpec, folder: WorkspaceFolder, prepared: Preparation) -> list[dict[str, Any]]:
    """Plans without the variables of the run, which would name a workspace that does not exist yet."""
    run = folder.run(_RUN_ID)
    launch = Launch(
        _RUN_ID, str(run.code), str(run.logs), prepared.prefix.python, prepared.prefix.variables,
        gpus=((),) * spec.node_count, hosts=("127.0.0.1",) * spec.node_count, ports=_some_ports(spec),
    )  # fmt: skip
    return [
        _describe_process(node.node, vars(process)) for node in plan_launch(spec, launch) for process in node.processes
    ]


def _describe_process(node: int, process: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "node": node,
        "rank": process["rank"],
        "command": list(process["argv"]),
        "folder": process["cwd"],
        "variables": dict(process["env"]),
    }


def _some_ports(spec: JobSpec) -> tuple[int, ...]:
    """Example ports; a run gets its ports when it starts."""
    return tuple(range(20000, 20000 + port_count(spec)))


def main(path: str) -> None:
    """Plans for a workspace that does not exist yet: it would have this machine as a target, and no runs."""
    folder = WorkspaceFolder(Path(path))
    local = local_target()
    around = EngineContext(folder, lambda run_id, event: None)
    now = Situation(folder, lambda name: make_engine(name, around), Occupation({local.name: local}))
    asked = json.load(sys.stdin)
    try:
        answer = {"result": plan_run(load_spec(asked["spec"]), asked["experiment"], now)}
    except TrainmasterError as error:
        answer = {"error": error.to_wire()}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
