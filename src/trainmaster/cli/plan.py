"""`trainmaster submit --dry-run`: what would be done, found out without writing anything."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import replace
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import get_run, list_runs, locate
from trainmaster.cli.parsing import Options
from trainmaster.cli.source import source_as_json
from trainmaster.dispatcher.runs.accepting import as_on
from trainmaster.dispatcher.runs.capacity import Request, check_fits, decide
from trainmaster.dispatcher.runs.containers import known_engine, plan_container
from trainmaster.dispatcher.runs.gpus import gpus_of
from trainmaster.dispatcher.runs.preparing import Preparation
from trainmaster.dispatcher.runs.start import agent_plans
from trainmaster.dispatcher.runs.throw_away import target_for
from trainmaster.engines import Engine, Nodes, Surroundings, make_engine
from trainmaster.environments import prefix
from trainmaster.job.errors import ComputeTargetException
from trainmaster.launch import Launch, agent_count, most_processes, plan_launch, port_count
from trainmaster.sdk.display.describing import SWEEP
from trainmaster.sdk.display.screen import paint, say, say_json, section
from trainmaster.sdk.display.text import counted, size, tags
from trainmaster.sdk.experiment import check_experiment_name, checked_tags
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import local_target
from trainmaster.shared.job_spec import THROW_AWAY, JobSpec, load_spec
from trainmaster.shared.records import ACTIVE, RunQuery, RunRecord, Status, TargetRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.vm_sizes import read_sizes

_RUN_ID = "RUN_ID"
_SNAPSHOT_ID = "SNAPSHOT_ID"
_SHOWN_IGNORED = 15


def show_plan(spec: JobSpec, experiment: str, options: Options) -> int:
    """Prints the plan. JSON: {"experiment", "workspace", "target", "environment", "snapshot", "processes"}."""
    check_experiment_name(experiment)
    labels = checked_tags(tags(options.tag))
    folder = locate(options.workspace)
    workspace = Workspace(path=folder.path) if folder.identity.exists() else None
    targets = _targets(workspace)
    target = _target(targets, spec, folder)
    spec = as_on(target, spec)
    plan = {
        "experiment": experiment,
        "tags": labels,
        "workspace": {"path": str(folder.path), "exists": workspace is not None},
        "target": {"name": target.name, "nodes": target.nodes, **_room(workspace, spec, targets, folder)},
        "environment": _environment(spec, folder),
        "snapshot": source_as_json(spec.source_directory, folder.path),
        "processes": _processes(spec, experiment, folder, target),
    }
    if options.json:
        say_json(plan)
    else:
        _show(plan, spec)
    return exits.OK


def _targets(workspace: Workspace | None) -> dict[str, TargetRecord]:
    """Name to target; a workspace that is not made yet has the one of this machine."""
    if workspace is None:
        local = local_target()
        return {local.name: local}
    found = [from_plain(TargetRecord, each) for each in workspace._call("targets.list")]
    return {target.name: target for target in found}


def _target(targets: dict[str, TargetRecord], spec: JobSpec, folder: WorkspaceFolder) -> TargetRecord:
    if spec.target == THROW_AWAY:
        targets.update({spec.target: own} if (own := target_for(_RUN_ID, spec, read_sizes(folder))) else {})
    if spec.target not in targets:
        raise ComputeTargetException(
            f"ComputeTargetNotFound: there is no compute target '{spec.target[:300]}' in this workspace",
            hint=f"Known: {', '.join(sorted(targets))}. Create one with 'trainmaster compute create'.",
        )
    check_fits(spec, targets[spec.target])
    return targets[spec.target]


def _engine(target: TargetRecord, folder: WorkspaceFolder) -> Engine:
    return make_engine(target.engine, Surroundings(folder, lambda run_id, event: None))


def _room(
    workspace: Workspace | None, spec: JobSpec, targets: dict[str, TargetRecord], folder: WorkspaceFolder
) -> dict[str, Any]:
    """Whether the run would start now; if not, what it would wait for. The dispatcher decides by the same rule."""
    active = _active(workspace, _together(targets[spec.target], targets)) if workspace else []
    held: dict[str, dict[str, tuple[int, ...]]] = {}
    for run in active:
        if run.nodes:
            held.setdefault(run.target, {})[run.id] = run.nodes
    queues = (spec.target,) if _engine(targets[spec.target], folder).queues else ()
    queue = [Request(run.id, run.target, _node_count(run)) for run in active if not run.nodes]
    decision = decide([*queue, Request(_RUN_ID, spec.target, spec.node_count)], held, targets, queues)
    reason = decision.reasons.get(_RUN_ID)
    return {"has_room": reason is None, "waiting_for": reason}


def _together(target: TargetRecord, targets: dict[str, TargetRecord]) -> list[str]:
    """The targets whose runs may stand in the way: this one, and those that have GPUs in common with it."""
    return [each.name for each in targets.values() if each is target or not gpus_of(each).isdisjoint(gpus_of(target))]


def _active(workspace: Workspace, targets: list[str]) -> list[RunRecord]:
    queries = [
        RunQuery(target=target, statuses=tuple(sorted(ACTIVE)), include_children=True, limit=1000) for target in targets
    ]
    found = [get_run(workspace, record.id) for query in queries for record in list_runs(workspace, query)]
    # Oldest first: that is the order of the queue. (A sweep itself waits for no nodes.)
    return [record for record in sorted(found, key=lambda each: each.seq) if record.spec and record.type != SWEEP]


def _node_count(run: RunRecord) -> int:
    return load_spec(run.spec).node_count


def _environment(spec: JobSpec, folder: WorkspaceFolder) -> dict[str, Any]:
    environment = spec.environment
    found = prefix.find(environment, folder, "", _shared())
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


def _shared() -> str:
    return os.environ.get("TRAINMASTER_ENVIRONMENTS", "")


def _processes(spec: JobSpec, experiment: str, folder: WorkspaceFolder, target: TargetRecord) -> list[dict[str, Any]]:
    """Command line and variables of every process, as the launch plan has them."""
    path = spec.environment_variables.get("PATH") or spec.inherited_variables.get("PATH", "")
    ready = prefix.find(spec.environment, folder, path, _shared())
    place = folder.environments / prefix.digest(spec.environment)
    found = ready or prefix.built(place, path)
    container = None
    if spec.environment.container is not None:
        container = plan_container(known_engine(), found, folder.run(_RUN_ID), folder)
    prepared = Preparation(found, str(folder.path / "kits" / "KIT"), None, container)
    if folder.identity.exists():
        record = RunRecord(
            id=_RUN_ID,
            experiment=experiment,
            status=Status.NOT_STARTED,
            created_at=time.time(),
            target=target.name,
            nodes=tuple(range(spec.node_count)),
        )
        nodes = Nodes(_RUN_ID, folder.run(_RUN_ID), agent_count(spec), target, record.nodes, most_processes(spec))
        placed = _engine(target, folder).place(nodes)
        # Nothing is taken: what the snapshot will be called is not known.
        named = replace(spec, snapshot_id=_SNAPSHOT_ID)
        plans = agent_plans(record, named, prepared, placed, folder, _some_ports(spec))
        processes = [
            (plan["node"], process) for plan in plans for process in (*plan["processes"], *plan.get("ranks", ()))
        ]
    else:
        # The variables of a run name its workspace, which is not made yet.
        run = folder.run(_RUN_ID)
        launch = Launch(
            _RUN_ID, str(run.code), str(run.logs), prepared.prefix.python, prepared.prefix.variables,
            gpus=((),) * spec.node_count, hosts=("127.0.0.1",) * spec.node_count, ports=_some_ports(spec),
        )  # fmt: skip
        processes = [(node.node, vars(process)) for node in plan_launch(spec, launch) for process in node.processes]
    return [
        {
            "node": node,
            "rank": process["rank"],
            "command": list(process["argv"]),
            "folder": process["cwd"],
            "variables": dict(process["env"]),
        }
        for node, process in processes
    ]


def _show(plan: dict[str, Any], spec: JobSpec) -> None:
    section("Runs", _process_lines(plan, spec))
    section("Environment", _environment_lines(plan["environment"]))
    section("Snapshot", _snapshot_lines(plan["snapshot"]))
    target = plan["target"]
    where = f"{target['name']} ({counted(target['nodes'], 'node')})"
    room = paint("room now", "green") if target["has_room"] else paint(target["waiting_for"], "yellow")
    section("Target", [f"{where}: {room}"])
    made = "" if plan["workspace"]["exists"] else " (will be made)"
    section("Workspace", [f"{plan['workspace']['path']}{made}, experiment {plan['experiment']}"])
    say(paint("A dry run: nothing was queued or written.", "dim"))


def _process_lines(plan: dict[str, Any], spec: JobSpec) -> list[str]:
    first = plan["processes"][0]
    lines = [paint(shlex.join(first["command"]), "cyan"), f"in {first['folder']}"]
    if len(plan["processes"]) > 1:
        lines.append(f"and {counted(len(plan['processes']) - 1, 'more process').replace('processs', 'processes')}")
    own = {name: value for name, value in first["variables"].items() if spec.inherited_variables.get(name) != value}
    taken_over = [name for name in first["variables"] if name not in own]
    lines += [f"{name}={shlex.quote(value)}" for name, value in own.items()]
    lines.append(paint(f"and of this shell {' '.join(taken_over)}", "dim"))
    return lines


def _environment_lines(environment: dict[str, Any]) -> list[str]:
    if environment["kind"] == "user-managed":
        return [f"{environment['python']} as it is"]
    ready = paint("ready", "green") if environment["ready"] else paint("to be built", "yellow")
    packages = " ".join(environment["packages"]) or "no packages"
    return [f"{environment['digest']}: {ready}", f"Python {environment['python']} with {packages}"]


def _snapshot_lines(snapshot: dict[str, Any]) -> list[str]:
    lines = [f"{snapshot['folder']}: {counted(snapshot['files'], 'file')}, {size(snapshot['bytes'])}"]
    lines += [f"{size(each['bytes']):>10}  {each['path']}" for each in snapshot["largest"]]
    ignored = snapshot["ignored"]
    if ignored:
        more = f" and {len(ignored) - _SHOWN_IGNORED} more" if len(ignored) > _SHOWN_IGNORED else ""
        lines.append(paint(f"left out: {', '.join(ignored[:_SHOWN_IGNORED])}{more}", "dim"))
    return lines


def _some_ports(spec: JobSpec) -> tuple[int, ...]:
    """Ports for a plan that is only shown; real ones are chosen when a run starts."""
    return tuple(range(20000, 20000 + port_count(spec)))
