"""`trainmaster compute create ssh NAME HOST...`: asks the hosts what they are, and makes a target of them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.ssh import SshCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.folders import WorkspaceFolder
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
    """Those of hosts over SSH."""
    group = parser.add_argument_group("hosts over SSH (compute create ssh NAME HOST...)")
    group.add_argument(
        "--user", metavar="NAME", default="", help="who logs in; default: what ~/.ssh/config says, or you"
    )
    group.add_argument("--port", metavar="N", type=int, help="the SSH port; default: what ~/.ssh/config says, or 22")
    group.add_argument("--key", metavar="FILE", default="", help="the private key; default: ssh's own, or an agent's")
    group.add_argument("--ssh-config", metavar="FILE", default="", help="instead of ~/.ssh/config")
    group.add_argument("--python", metavar="PATH", default="", help="on the hosts; default: python3")
    group.add_argument(
        "--folder", metavar="PATH", default="", help="where things are kept there; default: ~/.trainmaster"
    )
    group.add_argument(
        "--shared-folder", metavar="PATH", default="", help="a folder that all hosts see under this path"
    )
    group.add_argument("--lost-after", metavar="SECONDS", type=float, help="of silence; default: 60")


def refuse(options: Options, taken: Container[str] = ()) -> None:
    """They mean nothing to another engine, except for those it has `taken` over."""
    for name in ("user", "port", "key", "ssh_config", "python", "folder", "shared_folder", "lost_after"):
        if name not in taken and getattr(options, name) not in ("", None):
            raise UserErrorException(
                f"--{name.replace('_', '-')} is for hosts over SSH",
                hint="Use 'trainmaster compute create ssh NAME HOST...'.",
            )


def create(words: Sequence[str], options: Options) -> int:
    """Makes the target that the first of `words` names, of the hosts that the others are."""
    name, hosts = (words[0], list(words[1:])) if words else ("lab", [])
    if not hosts:
        raise UserErrorException(
            "no hosts are named", hint=f"For example: trainmaster compute create ssh {name} gpu1 me@gpu2:2222"
        )
    if options.nodes is not None or options.vm_size:
        word = "--vm-size" if options.vm_size else "--nodes"
        raise UserErrorException(f"{word} is for nodes of this machine", hint="Here every host is one node.")
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
    found = configuration.look(WorkspaceFolder(workspace.path))
    configuration.cpus_per_node = min(each.cpus for each in found) if options.cpus is None else options.cpus
    configuration.gpus_per_node = min(each.gpus for each in found) if options.gpus is None else options.gpus
    target = ComputeTarget.create(workspace, name, configuration)
    if options.json:
        from trainmaster.cli.compute import target_as_json

        say_json({**target_as_json(target), "hosts": [asdict(each) for each in found]})
        return exits.OK
    for line in render(COLUMNS, [row(each) for each in found], width_of_terminal(), paint):
        say(line)
    if len({(each.cpus, each.gpus) for each in found}) > 1:
        note("the hosts differ: every node counts as one of the smallest", "yellow")
    share = f"{count_of(configuration.cpus_per_node, 'CPU')} and {count_of(configuration.gpus_per_node, 'GPU')}"
    say(f"Target '{name}' has {count_of(target.nodes, 'node')} with {share} each.")
    return exits.OK


def row(host: SshHostReport) -> tuple[str, ...]:
    """A host as the columns have it."""
    sizes = (str(host.cpus), str(host.gpus), f"{host.memory_gb:g} GB", f"{host.free_gb:g} GB")
    return (host.host, host.address, f"{host.version} ({host.python})", *sizes)
