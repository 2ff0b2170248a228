"""`trainmaster compute create slurm [NAME]`: asks sinfo for the partitions and creates a target with one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.cli.compute_target import describe_nodes, target_as_json
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.slurm import SlurmCompute, SlurmConfiguration
from trainmaster.sdk.compute.slurm_machines import gpus_of
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note
from trainmaster.sdk.display.text import count_of

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_QUESTION = ("--noheader", "--format=%P|%a|%D|%c|%G|%l")


@dataclass(frozen=True)
class Partition:
    """A partition as sinfo describes it: the least that every node in it has."""

    name: str
    is_default: bool
    nodes: int
    cpus: int
    gpus: int
    time_limit: str


def create_arguments(parser: Parser) -> None:
    """Adds the options for a Slurm cluster."""
    group = parser.add_argument_group("a Slurm cluster (compute create slurm [NAME])")
    group.add_argument(
        "--login",
        metavar="[USER@]HOST[:PORT]",
        help="reach the cluster through this login node over SSH; --port, --key and --ssh-config apply to it, and "
        "--shared-folder is a folder of the cluster",
    )
    group.add_argument("--partition", metavar="NAME", help="the partition; default: the cluster's default")
    group.add_argument("--account", metavar="NAME", help="the account")
    group.add_argument("--qos", metavar="NAME", help="the quality of service")
    group.add_argument("--constraint", metavar="TEXT", help="features that the nodes must have")
    group.add_argument("--time-limit", metavar="TIME", help="the limit of every run: minutes, or 1-12:00:00")
    group.add_argument(
        "--sbatch",
        metavar="OPTION",
        action="append",
        default=[],
        help="another option for sbatch, such as --sbatch=--mem=8G",
    )


def refuse(options: Options) -> None:
    """Refuses these options for another engine."""
    for name in ("login", "partition", "account", "qos", "constraint", "time_limit", "sbatch"):
        if getattr(options, name):
            raise UserErrorException(
                f"--{name.replace('_', '-')} applies only to Slurm", hint="Use 'trainmaster compute create slurm NAME'."
            )


def ssh_options(options: Options) -> tuple[str, ...]:
    """The options for hosts over SSH that apply to Slurm too."""
    way = ("user", "port", "key", "ssh_config", "lost_after") if options.login else ()
    return ("python", "shared_folder", *way)


def create(words: Sequence[str], options: Options) -> int:
    """Creates a target for a Slurm cluster."""
    if len(words) > 1:
        raise UserErrorException(
            f"unexpected argument '{words[1]}'", hint="Write trainmaster compute create slurm [NAME]."
        )
    if options.vm_size:
        raise UserErrorException(
            "--vm-size applies only to nodes of this machine", hint="Choose nodes with --partition."
        )
    name = words[0] if words else "slurm"
    workspace = open_workspace(options.workspace)
    target = ComputeTarget.create(workspace, name, configuration(options, workspace))
    facts = target_as_json(target)
    return show_result(options, facts, f"A run on target '{name}' can use up to {describe_nodes(facts)}.")


def configuration(options: Options, workspace: Workspace) -> SlurmConfiguration:
    """The configuration from the options, completed by what sinfo reports."""
    found = SlurmCompute.configuration(
        account=options.account,
        qos=options.qos,
        cpus_per_node=options.cpus,
        time_limit=options.time_limit,
        constraint=options.constraint,
        extra_sbatch=options.sbatch,
        shared_folder=options.shared_folder or None,
        python=options.python or None,
        login=options.login,
        username=options.user,
        port=options.port,
        private_key_file=options.key,
        config_file=options.ssh_config,
        lost_after_seconds=60.0 if options.lost_after is None else options.lost_after,
    )
    chosen = choose(parse(found.look(workspace, *_QUESTION)), options.partition)
    found.partition, found.machine_cpus = chosen.name, chosen.cpus
    found.max_nodes = chosen.nodes if options.nodes is None else options.nodes
    found.gpus_per_node = chosen.gpus if options.gpus is None else options.gpus
    return found


def choose(partitions: list[Partition], wanted: str | None) -> Partition:
    """The partition named `wanted`; without a name the default partition, or the only one."""
    named = [each for each in partitions if each.name == wanted] if wanted else []
    defaults = [each for each in partitions if each.is_default] or (partitions if len(partitions) == 1 else [])
    if wanted and not named:
        raise UserErrorException(
            f"Slurm has no partition '{wanted}'", hint=f"Known partitions:\n{describe(partitions)}"
        )
    if not wanted and not defaults:
        raise UserErrorException(
            "Slurm has no default partition", hint=f"Choose one with --partition:\n{describe(partitions)}"
        )
    chosen = (named or defaults)[0]
    note(f"sinfo reports:\n{describe(partitions)}")
    note(f"Using {chosen.name}. Choose another with --partition, or less of it with --nodes, --cpus and --gpus.")
    return chosen


def describe(partitions: Iterable[Partition]) -> str:
    """One line for each partition."""
    return "\n".join(
        f"  {each.name}{' (default)' if each.is_default else ''}: {count_of(each.nodes, 'node')} with "
        f"{count_of(each.cpus, 'CPU')} and {count_of(each.gpus, 'GPU')}, time limit {each.time_limit}"
        for each in partitions
    )


def parse(text: str) -> list[Partition]:
    """The partitions in the output of sinfo, which has a line for each kind of nodes in a partition.

    >>> parse("main*|up|3|8|gpu:a100:4(S:0-1)|infinite\\nmain*|up|1|4+|gpu:2|infinite\\nold|down|9|1|(null)|1:00:00")
    [Partition(name='main', is_default=True, nodes=4, cpus=4, gpus=2, time_limit='infinite')]
    """
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) != 6 or words[1] != "up":
            continue
        name, _, nodes, cpus, gres, limit = words
        plain = name.rstrip("*")
        new = Partition(plain, name.endswith("*"), int(nodes), int(cpus.rstrip("+")), gpus_of(gres), limit)
        known = found.get(plain, new)
        total = new.nodes + (known.nodes if plain in found else 0)
        found[plain] = Partition(
            plain, new.is_default, total, min(known.cpus, new.cpus), min(known.gpus, new.gpus), limit
        )
    return list(found.values())
