"""`trainmaster compute list`, `create`, `delete` and `sizes`."""

from __future__ import annotations

import argparse
from typing import Any

from trainmaster.cli import compute_kubernetes, compute_slurm, compute_ssh, exits
from trainmaster.cli.compute_target import count_nodes, describe_nodes, target_as_json
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing, show_result, show_table
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.clusters import AmlCompute
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.local import LocalCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, note_warnings, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.pod_sizes import pod_size
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.spelling import guess
from trainmaster.shared.vm_sizes import VmSize

_KINDS = ("local", "ssh", "slurm", "kubernetes")
_KEYS = ("name", "engine", "nodes", "cpus_per_node", "gpus_per_node", "busy", "waiting")
_TARGETS: Listing[dict[str, Any]] = Listing(
    columns=(
        Column("TARGET", style=lambda text: "bold"),
        Column("ENGINE"),
        Column("NODES", right=True),
        Column("CPUS/NODE", right=True),
        Column("GPUS/NODE", right=True),
        Column("BUSY", right=True, style=lambda text: "" if text == "0" else "cyan"),
        Column("WAITING", right=True, style=lambda text: "" if text == "0" else "yellow"),
    ),
    row=lambda target: [count_nodes(target) if key == "nodes" else str(target[key]) for key in _KEYS],
    json=lambda target: target,
)
_SIZE_COLUMNS = (
    Column("SIZE", style=lambda text: "bold"),
    Column("CPUS", right=True),
    Column("GPUS", right=True),
    Column("GB", right=True),
    Column("GPU"),
    Column("POD CPUS", right=True),
    Column("POD MEMORY", right=True),
)


def list_targets(options: Options) -> int:
    """List the compute targets. BUSY counts nodes, WAITING counts runs.

    JSON: a list of {"name", "engine", "nodes", "cpus_per_node", "gpus_per_node", "busy", "idle", "waiting", "type",
    "vm_size"}; "busy" and "idle" count nodes, "waiting" counts runs.

      trainmaster compute list
    """
    targets = ComputeTarget.list(open_workspace(options.workspace))
    return _TARGETS.show([target_as_json(target) for target in targets], options)


def create_arguments(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="the target's name; or 'ssh NAME HOST...', 'slurm [NAME]' or 'kubernetes [NAME]'"
    )
    parser.add_argument("more", metavar="...", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument(
        "--nodes", metavar="N", type=int, help="default: 1; for clusters: the most that one run may use"
    )
    parser.add_argument("--cpus", metavar="N", type=_number, help="per node; default: an equal share of this machine")
    parser.add_argument("--gpus", metavar="N", type=int, help="per node; default: an equal share of this machine")
    parser.add_argument("--memory-per-node", metavar="SIZE", help="hold each node of this machine, or pod, to it: 8GB")
    parser.add_argument("--limit-cpus", action="store_true", help="hold each node of this machine, or pod, to its CPUs")
    parser.add_argument("--vm-size", metavar="SIZE", help="take CPUs and GPUs from the table of 'compute sizes'")
    compute_ssh.create_arguments(parser)
    compute_slurm.create_arguments(parser)
    compute_kubernetes.create_arguments(parser)


def _number(text: str) -> int | float:
    """A number of CPUs. Only pods can have a part of one."""
    return int(text) if text.isdecimal() else float(text)


def create(options: Options) -> int:
    """Create a target, or change the size of an existing one.

    'create NAME', or 'create local NAME', takes nodes of this machine, 'create ssh NAME HOST...' uses hosts over SSH,
    'create slurm [NAME]' uses a Slurm cluster, whose sizes are read from sinfo, and 'create kubernetes [NAME]' uses a
    namespace of a Kubernetes cluster.

    JSON: the target, as in 'compute list'.

      trainmaster compute create box --nodes 2 --cpus 4 --memory-per-node 8GB
      trainmaster compute create ssh hosts ada@alpha ada@beta --gpus 1
      trainmaster compute create slurm cluster --login ada@login.example.org --partition gpu
      trainmaster compute create kubernetes gpu --context prod --namespace train --gpus 1
    """
    if options.name == "kubernetes":
        compute_slurm.refuse(options)
        compute_ssh.refuse(options, except_for=("python",))
        return compute_kubernetes.create(options.more, options)
    compute_kubernetes.refuse(options)
    if options.name in ("slurm", "ssh"):
        refuse_limits(options, f"'create {options.name}'")
    if options.name == "slurm":
        compute_ssh.refuse(options, except_for=compute_slurm.ssh_options(options))
        return compute_slurm.create(options.more, options)
    compute_slurm.refuse(options)
    if options.name == "ssh":
        return compute_ssh.create(options.more, options)
    compute_ssh.refuse(options)
    if options.name == "local" and options.more:
        options.name, *options.more = options.more
    if options.more:
        raise UserErrorException(
            f"unexpected argument '{options.more[0]}'",
            hint=f"{guess(options.name, _KINDS)}Clusters: 'trainmaster compute create ssh NAME HOST...', 'trainmaster "
            "compute create slurm NAME' or 'trainmaster compute create kubernetes NAME'.",
        )
    configuration = _configuration(options)
    workspace = open_workspace(options.workspace)
    with note_warnings():
        target = ComputeTarget.create(workspace, options.name, configuration)
    if options.gpus and options.gpus > workspace.backend.machine().gpus:
        found = count_of(workspace.backend.machine().gpus, "GPU")
        note(f"note: this machine has {found}, but each node is set to {options.gpus}; the setting is kept", "yellow")
    facts = target_as_json(target)
    return show_result(options, facts, f"Target '{target.name}' has {describe_nodes(facts)}.")


def _configuration(options: Options) -> ComputeTargetProvisioningConfiguration:
    nodes = 1 if options.nodes is None else options.nodes
    if options.vm_size is None:
        return LocalCompute.configuration(
            nodes=nodes,
            cpus_per_node=options.cpus,
            gpus_per_node=options.gpus,
            memory_per_node=options.memory_per_node,
            limit_cpus=options.limit_cpus,
        )
    refuse_limits(options, "--vm-size")
    if options.cpus is not None or options.gpus is not None:
        raise UserErrorException(
            "--vm-size already sets the number of CPUs and GPUs", hint="Omit --cpus and --gpus, or --vm-size."
        )
    return AmlCompute.provisioning_configuration(vm_size=options.vm_size, max_nodes=nodes)


def refuse_limits(options: Options, what: str) -> None:
    """Refuses limits where nodes cannot have any."""
    for name in ("memory_per_node", "limit_cpus"):
        if getattr(options, name):
            raise UserErrorException(
                f"--{name.replace('_', '-')} cannot be used with {what}",
                hint="Only nodes of this machine and pods have limits. For Slurm, use --sbatch=--mem=8G.",
            )


def sizes_arguments(parser: Parser) -> None:
    parser.add_argument("pattern", metavar="PART", nargs="?", default="", help="only sizes with this in their name")


def sizes(options: Options) -> int:
    """Show the table of machine sizes (vm_size). A file vm-sizes.json can change and add sizes.

    POD is what a pod of a Kubernetes target requests: what a cluster leaves to pods of such a machine.

    JSON: {"strict", "files", "sizes": [{"name", "vcpus", "gpus", "memory_gb", "gpu", "pod": {"cpus", "memory",
    "gpus"}}]}; "files" are the places of vm-sizes.json.

      trainmaster compute sizes NC6
    """
    machine = open_workspace(options.workspace).backend.machine()
    found = [size for size in machine.sizes if options.pattern.upper() in size.name]
    if options.json:
        files = list(machine.size_files)
        shown = [{**to_plain(size), "pod": to_plain(pod_size(size))} for size in found]
        say_json({"strict": machine.strict, "files": files, "sizes": shown})
        return exits.OK
    show_table(_SIZE_COLUMNS, [_size_row(size) for size in found])
    return exits.OK


def _size_row(size: VmSize) -> tuple[str, ...]:
    pod = pod_size(size)
    return (size.name, str(size.vcpus), str(size.gpus), f"{size.memory_gb:g}", size.gpu, pod.cpus, pod.memory)


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the target's name")


def delete(options: Options) -> int:
    """Delete a target. Its runs stay.

    JSON: {"deleted": name}.

      trainmaster compute delete gpu
    """
    ComputeTarget(open_workspace(options.workspace), options.name).delete()
    return show_result(options, {"deleted": options.name}, f"Target '{options.name}' is deleted.")
