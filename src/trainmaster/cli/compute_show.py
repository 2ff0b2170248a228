"""`trainmaster compute show NAME`: a target, its settings, and its machines as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.compute import target_as_json
from trainmaster.cli.compute_ssh import COLUMNS as HOST_COLUMNS
from trainmaster.cli.compute_ssh import row as host_row
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.slurm_machines import SlurmMachine
from trainmaster.sdk.compute.ssh import SshCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
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
# Shown elsewhere, or of no use to a person.
_LEFT_OUT = ("class", "created_at", "modified_at", "tags", "description", "azure", "vm_size")


def show_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def show(options: Options) -> int:
    """One target: its size, its settings, and its machines: the nodes of a Slurm cluster with their states, or what
    hosts over SSH have. JSON: the target with {"settings", "machines"}.
    """
    target = ComputeTarget(open_workspace(options.workspace), options.name)
    facts, settings = target_as_json(target), _settings(target)
    if not options.json:
        _say_target(facts, settings)
    machines, troubles = _machines(target)
    if options.json:
        say_json({**facts, "settings": settings, "machines": [asdict(each) for each in machines]})
    else:
        _say_machines(machines)
    for trouble in troubles:
        note(trouble, "yellow")
    return exits.OK


def _settings(target: ComputeTarget) -> dict[str, Any]:
    known = target.serialize()["options"]
    return {name: value for name, value in known.items() if name not in _LEFT_OUT and value not in (None, "", [], {})}


def _machines(target: ComputeTarget) -> tuple[Sequence[SlurmMachine | SshHostReport], list[str]]:
    """Those that there are, and what is wrong with those that cannot be asked."""
    if isinstance(target, SlurmCompute):
        return target.machines(), []
    if isinstance(target, SshCompute):
        return target.machines()
    return [], []


def _say_target(facts: dict[str, Any], settings: dict[str, Any]) -> None:
    share = f"{count_of(facts['cpus_per_node'], 'CPU')} and {count_of(facts['gpus_per_node'], 'GPU')}"
    say(f"Target '{facts['name']}' ({facts['engine']}) has {count_of(facts['nodes'], 'node')} with {share} each.")
    say(f"Its runs have {count_of(facts['busy'], 'node')}; {count_of(facts['waiting'], 'run')} waiting.")
    widest = max(map(len, settings), default=0)
    for name, value in settings.items():
        say(f"  {name.ljust(widest)}  {' '.join(map(str, value)) if isinstance(value, list) else value}")


def _say_machines(machines: Sequence[SlurmMachine | SshHostReport]) -> None:
    of_slurm = [_row(each) for each in machines if isinstance(each, SlurmMachine)]
    hosts = [host_row(each) for each in machines if isinstance(each, SshHostReport)]
    for columns, rows in ((_COLUMNS, of_slurm), (HOST_COLUMNS, hosts)):
        for line in render(columns, rows, width_of_terminal(), paint) if rows else ():
            say(line)


def _row(machine: SlurmMachine) -> tuple[str, ...]:
    sizes = (str(machine.cpus), str(machine.gpus), f"{machine.memory_gb:g} GB")
    return (machine.name, machine.state, ",".join(machine.partitions), *sizes, machine.reason)
