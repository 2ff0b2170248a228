"""SshCompute: hosts reached over SSH, each of them a node."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.records import SshHostReport, TargetCheck, TargetRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


@dataclass
class SshConfiguration(ComputeTargetProvisioningConfiguration):
    """Hosts, and how to reach them."""

    kind = "SshCompute"
    engine = "ssh"
    hosts: tuple[str, ...] = ()
    username: str = ""
    port: int | None = None
    private_key_file: str = ""
    config_file: str = ""
    python: str = "python3"
    folder: str = ""
    shared_folder: str = ""
    cpus_per_node: int | None = None
    gpus_per_node: int | None = None
    lost_after_seconds: float = 60.0

    def __post_init__(self) -> None:
        self.validate_configuration()

    def validate_configuration(self) -> None:
        if not self.hosts or not all(isinstance(host, str) and host.strip() for host in self.hosts):
            raise ComputeTargetException("hosts are missing", hint="Write hosts=['gpu1', 'me@gpu2:2222'], for example.")
        check_words(self.hosts, self.username, self.python)
        twice = next((host for host in self.hosts if self.hosts.count(host) > 1), None)
        if twice:
            raise ComputeTargetException(f"host {twice} is named twice", hint="Each host is one node.")
        check_way(self.port, self.private_key_file, self.config_file, self.lost_after_seconds)
        for name in ("folder", "shared_folder"):
            path = getattr(self, name)
            if path and not path.startswith(("/", "~")):
                raise ComputeTargetException(f"{name} must be an absolute path on the hosts, not {path!r}")

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        self.validate_configuration()
        cpus, gpus = self.cpus_per_node, self.gpus_per_node
        if cpus is None or gpus is None:
            found = self.look(workspace)
            cpus = min(each.cpus for each in found) if cpus is None else cpus
            gpus = min(each.gpus for each in found) if gpus is None else gpus
        return TargetRecord(name, self.engine, len(self.hosts), cpus, gpus, options=self._options())

    def look(self, workspace: Workspace) -> list[SshHostReport]:
        """Asks every host for its CPUs and GPUs. The error for a host that cannot be used says why."""
        return look(TargetRecord("", self.engine, len(self.hosts), 0, 0, options=self._options()), workspace)

    def _options(self) -> dict[str, Any]:
        return {
            "class": self.kind,
            "hosts": list(self.hosts),
            "username": self.username,
            "port": self.port,
            "private_key_file": absolute(self.private_key_file),
            "config_file": absolute(self.config_file),
            "python": self.python,
            "folder": self.folder,
            "shared_folder": self.shared_folder,
            "lost_after_seconds": self.lost_after_seconds,
        }


class SshCompute(ComputeTarget):
    """Hosts of yours, over SSH. They need Python 3.6 or newer and nothing else; see docs/guide/ssh.md."""

    _type = "ssh"

    @staticmethod
    def configuration(
        hosts: Sequence[str],
        username: str = "",
        port: int | None = None,
        private_key_file: str = "",
        shared_folder: str = "",
        folder: str = "",
        python: str = "python3",
        config_file: str = "",
        cpus_per_node: int | None = None,
        gpus_per_node: int | None = None,
        lost_after_seconds: float = 60.0,
    ) -> SshConfiguration:
        """Hosts by the names that `ssh` knows: `[user@]name[:port]`, or aliases of ~/.ssh/config.

        Every host is a node. The hosts report their CPUs and GPUs unless `cpus_per_node` and `gpus_per_node` are given.
        With a `shared_folder`, which all hosts see under one path, all nodes of a run share a working folder. Without
        one, each host keeps its files in `folder` (`~/.trainmaster`).

        >>> SshCompute.configuration(hosts=["gpu1", "gpu2"], username="me")     # doctest: +SKIP
        """
        given = [hosts] if isinstance(hosts, str) else list(hosts)
        return SshConfiguration(
            hosts=tuple(given),
            username=username,
            port=port,
            private_key_file=private_key_file,
            config_file=config_file,
            python=python,
            folder=folder,
            shared_folder=shared_folder,
            cpus_per_node=cpus_per_node,
            gpus_per_node=gpus_per_node,
            lost_after_seconds=lost_after_seconds,
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts, in the order of the nodes."""
        return tuple(self._option("hosts") or ())

    def get_status(self) -> Occupancy:
        """How many nodes it has, and how many are busy."""
        return self.occupancy()

    def machines(self) -> tuple[list[SshHostReport], list[str]]:
        """The hosts with their CPUs and GPUs now, and why a host cannot be used."""
        found, troubles = [], []
        for name in self.hosts:
            try:
                one = replace(self._record, options={**self._record.options, "hosts": [name]})
                found += look(one, self.workspace)
            except ComputeTargetException as error:
                troubles.append(error.message)
        return found, troubles

    def test(self) -> list[TargetCheck]:
        """Whether its hosts can be used."""
        found, problems = self.machines()
        good = [TargetCheck(f"host {each.host}", True, f"Python {each.version} ({each.python})") for each in found]
        return good + [TargetCheck("host", False, problem) for problem in problems]

    def _properties(self) -> dict[str, Any]:
        names = ("hosts", "username", "port", "private_key_file", "shared_folder", "lost_after_seconds")
        return {name: self._option(name) for name in names}


def look(target: TargetRecord, workspace: Workspace, secret: str = "") -> list[SshHostReport]:
    """Asks all hosts of a target at once for their CPUs and GPUs. `secret` is the password, if it has one."""
    with workspace.backend.open_connection() as connection:
        found = connection.call("targets.ask_hosts", target=to_plain(target), secret=secret)
    return [from_plain(SshHostReport, each) for each in found]


def check_way(port: int | None, private_key_file: str, config_file: str, lost_after_seconds: float) -> None:
    """Refuses settings with which no host can be reached."""
    if port is not None and not (isinstance(port, int) and 0 < port < 65536):
        raise ComputeTargetException(f"port must be a number from 1 to 65535, not {port!r}")
    for name, path in {"private_key_file": private_key_file, "config_file": config_file}.items():
        if path and not os.path.isfile(os.path.expanduser(path)):
            raise ComputeTargetException(f"the file {path} does not exist", hint=f"Check {name}.")
    if not isinstance(lost_after_seconds, int | float) or not 2 <= lost_after_seconds <= 86400:
        raise ComputeTargetException(f"lost_after_seconds must be from 2 to 86400, not {lost_after_seconds!r}")


def check_words(hosts: Sequence[str], *words: str) -> None:
    """Refuses names that ssh or a shell would read as an option or as syntax."""
    for word in (*hosts, *words):
        if word.startswith("-") or any(letter.isspace() or letter in "'\"\\;&|<>$`" for letter in word):
            raise ComputeTargetException(f"{word!r} cannot be the name of a host, a user or a program")


def absolute(path: str) -> str:
    """An absolute path on this machine; empty stays empty."""
    return os.path.abspath(os.path.expanduser(path)) if path else ""
