"""`trainmaster compute list`, `create`, `delete` and `sizes`."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from trainmaster.cli import compute_slurm, compute_ssh, exits
from trainmaster.cli.opening import locate, open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.clusters import AmlCompute
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.local import LocalCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.hardware import gpus
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.vm_sizes import edited_files, read_sizes

_COLUMNS = (
    Column("TARGET", style=lambda text: "bold"),
    Column("ENGINE"),
    Column("NODES", right=True),
    Column("CPUS/NODE", right=True),
    Column("GPUS/NODE", right=True),
    Column("BUSY", right=True, style=lambda text: "" if text == "0" else "cyan"),
    Column("WAITING", right=True, style=lambda text: "" if text == "0" else "yellow"),
)
_SIZE_COLUMNS = (
    Column("SIZE", style=lambda text: "bold"),
    Column("CPUS", right=True),
    Column("GPUS", right=True),
    Column("GB", right=True),
    Column("GPU"),
)


def targets_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def targets(options: Options) -> int:
    """The compute targets. JSON: a list of {"name", "engine", "nodes", "cpus_per_node", "gpus_per_node", "busy",
    "idle", "waiting", "type", "vm_size"}: busy and idle count nodes, waiting counts runs.
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
    counts = {key: status[key] for key in ("busy", "idle", "waiting")}
    return {**sizes, **counts, "type": target.type, "vm_size": target.vm_size}


def create_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="or 'ssh NAME HOST...', or 'slurm [NAME]'")
    parser.add_argument("more", metavar="...", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--nodes", metavar="N", type=int, help="default: 1; of Slurm: the most that one run may have")
    parser.add_argument("--cpus", metavar="N", type=int, help="per node; default: an equal share of this machine's")
    parser.add_argument("--gpus", metavar="N", type=int, help="per node; default: an equal share of this machine's")
    parser.add_argument("--vm-size", metavar="SIZE", help="a machine kind of the table of sizes instead")
    compute_ssh.create_arguments(parser)
    compute_slurm.create_arguments(parser)


def create(options: Options) -> int:
    """Make a target of nodes of this machine, with `ssh NAME HOST...` of hosts over SSH, or with `slurm [NAME]` of a
    Slurm cluster, of which sinfo is asked; an existing one gets another size. JSON: the target.
    """
    if options.name == "slurm":
        compute_ssh.refuse(options, taken=compute_slurm.taken(options))
        return compute_slurm.create(options.more, options)
    compute_slurm.refuse(options)
    if options.name == "ssh":
        return compute_ssh.create(options.more, options)
    compute_ssh.refuse(options)
    if options.more:
        raise UserErrorException(
            f"'{options.more[0]}' is one word too many",
            hint="Clusters: 'trainmaster compute create ssh NAME HOST...' or 'trainmaster compute create slurm NAME'.",
        )
    configuration = _configuration(options)
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        target = ComputeTarget.create(open_workspace(options.workspace), options.name, configuration)
    for doubt in doubts:
        note(str(doubt.message), "yellow")
    if options.gpus and options.gpus > len(gpus()):
        few = f"this machine has {count_of(len(gpus()), 'GPU')}, each node is to have {options.gpus}"
        note(f"{few}: the figure is taken as it is", "yellow")
    facts = target_as_json(target)
    if options.json:
        say_json(facts)
    else:
        share = f"{count_of(facts['cpus_per_node'], 'CPU')} and {count_of(facts['gpus_per_node'], 'GPU')}"
        say(f"Target '{target.name}' has {count_of(target.nodes, 'node')} with {share} each.")
    return exits.OK


def _configuration(options: Options) -> ComputeTargetProvisioningConfiguration:
    nodes = 1 if options.nodes is None else options.nodes
    if options.vm_size is None:
        return LocalCompute.configuration(nodes=nodes, cpus_per_node=options.cpus, gpus_per_node=options.gpus)
    if options.cpus is not None or options.gpus is not None:
        raise UserErrorException("--vm-size says how many CPUs and GPUs there are", hint="Leave --cpus and --gpus out.")
    return AmlCompute.provisioning_configuration(vm_size=options.vm_size, max_nodes=nodes)


def sizes_arguments(parser: Parser) -> None:
    parser.add_argument("pattern", metavar="PART", nargs="?", default="", help="only those with this in their name")


def sizes(options: Options) -> int:
    """The table of machine kinds (vm_size). JSON: {"strict", "files", "sizes": [{"name", "vcpus", "gpus", "memory_gb",
    "gpu"}]}: a vm-sizes.json in one of the files changes or adds sizes.
    """
    folder = locate(options.workspace)
    table = read_sizes(folder)
    found = [size for size in table.sizes.values() if options.pattern.upper() in size.name]
    if options.json:
        files = [str(file) for file in edited_files(folder)]
        say_json({"strict": table.strict, "files": files, "sizes": [to_plain(size) for size in found]})
        return exits.OK
    rows = [(size.name, str(size.vcpus), str(size.gpus), f"{size.memory_gb:g}", size.gpu) for size in found]
    for line in render(_SIZE_COLUMNS, rows, width_of_terminal(), paint):
        say(line)
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
