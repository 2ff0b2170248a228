"""`trainmaster submit --dry-run`: shows what would be done, without writing anything."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_missing, open_workspace
from trainmaster.cli.parsing import Options
from trainmaster.cli.source import source_as_json
from trainmaster.job.script.labels import check_tags
from trainmaster.sdk.display.screen import paint, say, say_json, section
from trainmaster.sdk.display.text import count_of, size
from trainmaster.sdk.dry_run import plan_run, plan_without_workspace
from trainmaster.sdk.experiment import check_experiment_name
from trainmaster.shared.job_spec import JobSpec

_SHOWN_IGNORED = 15


def show_plan(spec: JobSpec, experiment: str, given_tags: Mapping[str, str | None], options: Options) -> int:
    """Prints the plan. JSON: {"experiment", "tags", "workspace", "target", "environment", "snapshot", "processes"}."""
    check_experiment_name(experiment)
    labels = check_tags(given_tags)
    missing = find_missing(options.workspace)
    if missing is not None:
        planned, location = plan_without_workspace(spec, experiment, missing), str(missing.path)
    else:
        workspace = open_workspace(options.workspace)
        planned, location = plan_run(spec, experiment, workspace.connection), workspace.backend.location
    plan = {
        "experiment": experiment,
        "tags": labels,
        "workspace": {"path": location, "exists": missing is None},
        "target": planned["target"],
        "environment": planned["environment"],
        "snapshot": source_as_json(spec.source_directory, Path(location)),
        "processes": planned["processes"],
    }
    if options.json:
        say_json(plan)
    else:
        _show(plan, spec)
    return exits.OK


def _show(plan: dict[str, Any], spec: JobSpec) -> None:
    section("Runs", _process_lines(plan, spec))
    section("Environment", _environment_lines(plan["environment"]))
    section("Snapshot", _snapshot_lines(plan["snapshot"]))
    target = plan["target"]
    where = f"{target['name']} ({count_of(target['nodes'], 'node')})"
    room = paint("can start now", "green") if target["has_room"] else paint(target["waiting_for"], "yellow")
    section("Target", [f"{where}: {room}"])
    created = "" if plan["workspace"]["exists"] else " (will be created)"
    section("Workspace", [f"{plan['workspace']['path']}{created}, experiment {plan['experiment']}"])
    say(paint("This was a dry run: nothing was queued or written.", "dim"))


def _process_lines(plan: dict[str, Any], spec: JobSpec) -> list[str]:
    first = plan["processes"][0]
    lines = [paint(shlex.join(first["command"]), "cyan"), f"in {first['folder']}"]
    if len(plan["processes"]) > 1:
        more = len(plan["processes"]) - 1
        lines.append("and one more process" if more == 1 else f"and {more:,} more processes")
    own = {name: value for name, value in first["variables"].items() if spec.inherited_variables.get(name) != value}
    inherited = [name for name in first["variables"] if name not in own]
    lines += [f"{name}={shlex.quote(value)}" for name, value in own.items()]
    lines.append(paint(f"and from this shell: {' '.join(inherited)}", "dim"))
    return lines


def _environment_lines(environment: dict[str, Any]) -> list[str]:
    if environment["kind"] == "user-managed":
        return [f"{environment['python']}, unchanged"]
    ready = paint("ready", "green") if environment["ready"] else paint("to be built", "yellow")
    packages = " ".join(environment["packages"]) or "no packages"
    return [f"{environment['digest']}: {ready}", f"Python {environment['python']} with {packages}"]


def _snapshot_lines(snapshot: dict[str, Any]) -> list[str]:
    lines = [f"{snapshot['folder']}: {count_of(snapshot['files'], 'file')}, {size(snapshot['bytes'])}"]
    lines += [f"{size(each['bytes']):>10}  {each['path']}" for each in snapshot["largest"]]
    ignored = snapshot["ignored"]
    if ignored:
        more = f" and {len(ignored) - _SHOWN_IGNORED} more" if len(ignored) > _SHOWN_IGNORED else ""
        lines.append(paint(f"ignored: {', '.join(ignored[:_SHOWN_IGNORED])}{more}", "dim"))
    return lines
