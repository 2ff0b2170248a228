"""`trainmaster compute list`, `create` and `delete`."""

from __future__ import annotations

from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.screen import paint, say, say_json, width_of_terminal
from trainmaster.cli.table import Column, render
from trainmaster.cli.text import counted
from trainmaster.compute import ComputeTarget, LocalCompute

_COLUMNS = (
    Column("TARGET", style=lambda text: "bold"),
    Column("ENGINE"),
    Column("NODES", right=True),
    Column("CPUS/NODE", right=True),
    Column("GPUS/NODE", right=True),
    Column("BUSY", right=True, style=lambda text: "" if text == "0" else "cyan"),
    Column("WAITING", right=True, style=lambda text: "" if text == "0" else "yellow"),
)


def targets_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def targets(options: Options) -> int:
    """The compute targets. JSON: a list of {"name", "engine", "nodes", "cpus_per_node", "gpus_per_node", "busy",
    "idle", "waiting"}: busy and idle count nodes, waiting counts runs.
    """
    found = [target_as_json(target) for target in ComputeTarget.list(open_workspace(options.workspace))]
    if options.json:
        say_json(found)
        return exits.OK
    keys = ("name", "engine", "nodes", "cpus_per_node", "gpus_per_node", "busy", "waiting")
    rows = [tuple(str(target[key]) for key in keys) for target in found]
    for line in render(_COLUMNS, rows, width_of_terminal(), paint):
        say(line)
    return exits.OK


def target_as_json(target: ComputeTarget) -> dict[str, Any]:
    """The keys of a target."""
    record, status = target.serialize(), target.occupancy()
    sizes = {key: record[key] for key in ("name", "engine", "nodes", "cpus_per_node", "gpus_per_node")}
    return {**sizes, **{key: status[key] for key in ("busy", "idle", "waiting")}}


def create_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--nodes", metavar="N", type=int, default=1, help="default: 1")
    parser.add_argument("--cpus", metavar="N", type=int, help="per node; default: an equal share of this machine's")
    parser.add_argument("--gpus", metavar="N", type=int, help="per node; default: an equal share of this machine's")


def create(options: Options) -> int:
    """Make a target of nodes of this machine, or give an existing one another size. JSON: the target."""
    configuration = LocalCompute.configuration(
        nodes=options.nodes, cpus_per_node=options.cpus, gpus_per_node=options.gpus
    )
    target = ComputeTarget.create(open_workspace(options.workspace), options.name, configuration)
    if options.json:
        say_json(target_as_json(target))
    else:
        share = f"{counted(configuration.cpus_per_node, 'CPU')} and {counted(configuration.gpus_per_node, 'GPU')}"
        say(f"Target '{target.name}' has {counted(target.nodes, 'node')} with {share} each.")
    return exits.OK


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def delete(options: Options) -> int:
    """Remove a target; its runs stay. JSON: {"deleted": name}."""
    workspace = open_workspace(options.workspace)
    ComputeTarget(workspace, options.name).delete()
    if options.json:
        say_json({"deleted": options.name})
    else:
        say(f"Target '{options.name}' is removed.")
    return exits.OK
