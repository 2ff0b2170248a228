"""`trainmaster compute create slurm [NAME]`: asks sinfo what there is, and takes what fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.slurm import SlurmCompute, SlurmConfiguration
from trainmaster.sdk.compute.slurm_machines import gpus_of
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.folders import WorkspaceFolder

_QUESTION = ("--noheader", "--format=%P|%a|%D|%c|%G|%l")


@dataclass(frozen=True)
class Partition:
    """What sinfo says of a partition: the least that all of its nodes have."""

    name: str
    is_default: bool
    nodes: int
    cpus: int
    gpus: int
    time_limit: str


def create_arguments(parser: Parser) -> None:
    """The options of a target of Slurm."""
    group = parser.add_argument_group("a Slurm cluster (compute create slurm [NAME])")
    group.add_argument(
        "--login",
        metavar="[USER@]HOST[:PORT]",
        help="use the cluster from here, through this login node over SSH; --port, --key and --ssh-config lead there, "
        "and --shared-folder is a folder at the cluster",
    )
    group.add_argument("--partition", metavar="NAME", help="the partition; default: the cluster's own default")
    group.add_argument("--account", metavar="NAME", help="the account")
    group.add_argument("--qos", metavar="NAME", help="the quality of service")
    group.add_argument("--constraint", metavar="TEXT", help="which nodes")
    group.add_argument("--time-limit", metavar="TIME", help="of every run: minutes, or as 1-12:00:00")
    group.add_argument(
        "--sbatch",
        metavar="OPTION",
        action="append",
        default=[],
        help="another option for sbatch, as --sbatch=--mem=8G",
    )


def refuse(options: Options) -> None:
    """They mean nothing to another engine."""
    for name in ("login", "partition", "account", "qos", "constraint", "time_limit", "sbatch"):
        if getattr(options, name):
            raise UserErrorException(
                f"--{name.replace('_', '-')} is for Slurm", hint="Use 'trainmaster compute create slurm NAME'."
            )


def taken(options: Options) -> tuple[str, ...]:
    """The options of hosts over SSH that mean something here."""
    way = ("user", "port", "key", "ssh_config", "lost_after") if options.login else ()
    return ("python", "shared_folder", *way)


def create(words: Sequence[str], options: Options) -> int:
    """Make a target of a Slurm cluster. JSON: the target."""
    from trainmaster.cli.compute import target_as_json

    if len(words) > 1:
        raise UserErrorException(f"'{words[1]}' is one word too many", hint="trainmaster compute create slurm [NAME]")
    if options.vm_size:
        raise UserErrorException("--vm-size is for nodes of this machine", hint="Choose nodes with --partition.")
    name = words[0] if words else "slurm"
    workspace = open_workspace(options.workspace)
    asked_for = configuration(options, WorkspaceFolder(workspace.path))
    target = ComputeTarget.create(workspace, name, asked_for)
    facts = target_as_json(target)
    if options.json:
        say_json(facts)
        return exits.OK
    share = f"{count_of(facts['cpus_per_node'], 'CPU')} and {count_of(facts['gpus_per_node'], 'GPU')}"
    say(f"Target '{name}': up to {count_of(target.nodes, 'node')} for a run, with {share} each.")
    return exits.OK


def configuration(options: Options, workspace: WorkspaceFolder) -> SlurmConfiguration:
    """What was asked for; the rest as sinfo has it."""
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
    """The partition of this name; without one the default, or the only one."""
    named = [each for each in partitions if each.name == wanted] if wanted else []
    defaults = [each for each in partitions if each.is_default] or (partitions if len(partitions) == 1 else [])
    if wanted and not named:
        raise UserErrorException(f"Slurm has no partition '{wanted}'", hint=f"There are:\n{described(partitions)}")
    if not wanted and not defaults:
        raise UserErrorException(
            "Slurm has no default partition", hint=f"Choose one with --partition:\n{described(partitions)}"
        )
    chosen = (named or defaults)[0]
    note(f"sinfo has:\n{described(partitions)}")
    note(f"Taken: {chosen.name}. Others with --partition; less of it with --nodes, --cpus, --gpus.")
    return chosen


def described(partitions: Iterable[Partition]) -> str:
    """One line for each."""
    return "\n".join(
        f"  {each.name}{' (default)' if each.is_default else ''}: {count_of(each.nodes, 'node')} with "
        f"{count_of(each.cpus, 'CPU')} and {count_of(each.gpus, 'GPU')}, time limit {each.time_limit}"
        for each in partitions
    )


def parse(text: str) -> list[Partition]:
    """The lines of sinfo; a partition of several kinds of nodes has one for each kind.

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
