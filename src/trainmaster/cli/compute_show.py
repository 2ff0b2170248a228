"""`trainmaster compute show NAME`: a target, its settings, and the present state of its machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.compute_ssh import COLUMNS as HOST_COLUMNS
from trainmaster.cli.compute_ssh import row as host_row
from trainmaster.cli.compute_target import describe_nodes, target_as_json
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import show_table
from trainmaster.cli.parsing import Options, Parser
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.slurm_machines import SlurmMachine
from trainmaster.sdk.compute.ssh import SshCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.records import SshHostReport

_COLUMNS = (
    Column("NODE", style=lambda text: "bold"),
    Column("STATE", style=lambda text: "" if text in ("idle", "mixed", "allocated", "completing") else "yellow"),
    Column("PARTITIONS"),
    Column("CPUS", right=True),
    Column("GPUS", right=True),
    Column("MEMORY", right=True),
    Column("WHY", flexible=True),
)
# Printed elsewhere, or of no interest to a person.
_HIDDEN = ("class", "created_at", "modified_at", "tags", "description", "azure", "vm_size")


def show_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the target's name")


def show(options: Options) -> int:
    """Show one target: its size, its settings, and its machines (the nodes of a Slurm cluster, or hosts over SSH).

    JSON: the target, as in 'compute list', with {"settings", "machines"}.

      trainmaster compute show gpu
    """
    target = ComputeTarget(open_workspace(options.workspace), options.name)
    facts, settings = target_as_json(target), _settings(target)
    if not options.json:
        _say_target(facts, settings)
    machines, problems = _machines(target)
    if options.json:
        say_json({**facts, "settings": settings, "machines": [asdict(each) for each in machines]})
    else:
        _say_machines(machines)
    for problem in problems:
        note(problem, "yellow")
    return exits.OK


def _settings(target: ComputeTarget) -> dict[str, Any]:
    known = target.serialize()["options"]
    return {name: value for name, value in known.items() if name not in _HIDDEN and value not in (None, "", [], {})}


def _machines(target: ComputeTarget) -> tuple[Sequence[SlurmMachine | SshHostReport], list[str]]:
    """The machines that answered, and a sentence about each that did not."""
    if isinstance(target, SlurmCompute):
        return target.machines(), []
    if isinstance(target, SshCompute):
        return target.machines()
    return [], []


def _say_target(facts: dict[str, Any], settings: dict[str, Any]) -> None:
    say(f"Target '{facts['name']}' ({facts['engine']}) has {describe_nodes(facts)}.")
    say(f"{count_of(facts['busy'], 'node')} in use, {count_of(facts['waiting'], 'run')} waiting.")
    widest = max(map(len, settings), default=0)
    for name, value in settings.items():
        say(f"  {name.ljust(widest)}  {' '.join(map(str, value)) if isinstance(value, list) else value}")


def _say_machines(machines: Sequence[SlurmMachine | SshHostReport]) -> None:
    nodes = [_row(each) for each in machines if isinstance(each, SlurmMachine)]
    hosts = [host_row(each) for each in machines if isinstance(each, SshHostReport)]
    for columns, rows in ((_COLUMNS, nodes), (HOST_COLUMNS, hosts)):
        if rows:
            show_table(columns, rows)


def _row(machine: SlurmMachine) -> tuple[str, ...]:
    sizes = (str(machine.cpus), str(machine.gpus), f"{machine.memory_gb:g} GB")
    return (machine.name, machine.state, ",".join(machine.partitions), *sizes, machine.reason)
