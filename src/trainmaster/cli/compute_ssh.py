"""`trainmaster compute create ssh NAME HOST...`: looks at the hosts and creates a target with them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict

from trainmaster.cli import exits
from trainmaster.cli.compute_target import describe_nodes, target_as_json
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import show_table
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.ssh import SshCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.shared.records import SshHostReport

COLUMNS = (
    Column("HOST", style=lambda text: "bold"),
    Column("ADDRESS"),
    Column("PYTHON"),
    Column("CPUS", right=True),
    Column("GPUS", right=True),
    Column("MEMORY", right=True),
    Column("FREE", right=True),
)


def create_arguments(parser: Parser) -> None:
    """Adds the options for hosts over SSH."""
    group = parser.add_argument_group("hosts over SSH (compute create ssh NAME HOST...)")
    group.add_argument(
        "--user", metavar="NAME", default="", help="the user to log in as; default: from ~/.ssh/config, or you"
    )
    group.add_argument("--port", metavar="N", type=int, help="the SSH port; default: from ~/.ssh/config, or 22")
    group.add_argument("--key", metavar="FILE", default="", help="the private key; default: those of ssh or its agent")
    group.add_argument("--ssh-config", metavar="FILE", default="", help="a file to use instead of ~/.ssh/config")
    group.add_argument("--python", metavar="PATH", default="", help="the Python on the hosts; default: python3")
    group.add_argument(
        "--folder", metavar="PATH", default="", help="the folder for runs on the hosts; default: ~/.trainmaster"
    )
    group.add_argument(
        "--shared-folder", metavar="PATH", default="", help="a folder that all hosts share under this path"
    )
    group.add_argument("--lost-after", metavar="SECONDS", type=float, help="how long a host may be silent; default: 60")


def refuse(options: Options, except_for: Container[str] = ()) -> None:
    """Refuses these options for another engine, except for those that it uses too."""
    for name in ("user", "port", "key", "ssh_config", "python", "folder", "shared_folder", "lost_after"):
        if name not in except_for and getattr(options, name) not in ("", None):
            raise UserErrorException(
                f"--{name.replace('_', '-')} applies only to hosts over SSH",
                hint="Use 'trainmaster compute create ssh NAME HOST...'.",
            )


def create(words: Sequence[str], options: Options) -> int:
    """Creates the target with the first of `words` as its name and the others as its hosts."""
    name, hosts = (words[0], list(words[1:])) if words else ("lab", [])
    if not hosts:
        raise UserErrorException(
            "a host is missing", hint=f"For example: trainmaster compute create ssh {name} gpu1 me@gpu2:2222"
        )
    if options.nodes is not None or options.vm_size:
        word = "--vm-size" if options.vm_size else "--nodes"
        raise UserErrorException(f"{word} applies only to nodes of this machine", hint="Every SSH host is one node.")
    configuration = SshCompute.configuration(
        hosts=hosts,
        username=options.user,
        port=options.port,
        private_key_file=options.key,
        config_file=options.ssh_config,
        python=options.python or "python3",
        folder=options.folder,
        shared_folder=options.shared_folder,
        lost_after_seconds=60.0 if options.lost_after is None else options.lost_after,
    )
    workspace = open_workspace(options.workspace)
    found = configuration.look(workspace)
    configuration.cpus_per_node = min(each.cpus for each in found) if options.cpus is None else options.cpus
    configuration.gpus_per_node = min(each.gpus for each in found) if options.gpus is None else options.gpus
    target = ComputeTarget.create(workspace, name, configuration)
    facts = target_as_json(target)
    if options.json:
        say_json({**facts, "hosts": [asdict(each) for each in found]})
        return exits.OK
    show_table(COLUMNS, [row(each) for each in found])
    if len({(each.cpus, each.gpus) for each in found}) > 1:
        note("note: the hosts differ; every node counts as the smallest of them", "yellow")
    say(f"Target '{name}' has {describe_nodes(facts)}.")
    return exits.OK


def row(host: SshHostReport) -> tuple[str, ...]:
    """The cells of a host."""
    sizes = (str(host.cpus), str(host.gpus), f"{host.memory_gb:g} GB", f"{host.free_gb:g} GB")
    return (host.host, host.address, f"{host.version} ({host.python})", *sizes)
