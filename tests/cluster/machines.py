"""Machines of one team on this one: each with its own name, network and processes, and all files of this machine.

    with Machines(["alpha", "beta"]) as machines:
        machines[0].start(["hostname"])
        machines[0].cut()       # its cable is pulled
        machines[0].mend()
        machines[0].kill()      # its power fails

They share a file system, as the servers of a team do. `tests/cluster/hosts.py` has hosts that share nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from tests.cluster.hosts import holder, in_network, joined_from_here, namespace, own_network, require_tools
from tests.conftest import until

_INIT = "hostname {name}; ip link set lo up; exec sleep infinity"


@dataclass(frozen=True)
class Machine:
    """One machine that is on."""

    name: str
    address: str
    holder: subprocess.Popen[bytes]
    switch: int
    port: str

    @property
    def first_process(self) -> int:
        """Its first process, by its number here."""
        with open(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children") as file:
            return int(file.read().split()[0])

    def start(
        self, command: Sequence[str], variables: Mapping[str, str], output: int, errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a program there. It ends with the machine."""
        words = ["nsenter", f"--target={self.first_process}", "--net", "--uts", "--mount", "--pid", "--", *command]
        return subprocess.Popen(words, stdout=output, stderr=errors, env=dict(variables))

    def cut(self) -> None:
        """Pull its cable: connections stall, and nobody is told."""
        in_network(self.switch, ["ip", "link", "set", self.port, "down"])

    def mend(self) -> None:
        """Plug the cable in again."""
        in_network(self.switch, ["ip", "link", "set", self.port, "up"])

    def kill(self) -> None:
        """Its power fails: every process is gone, without a last word on the network."""
        self.cut()
        self.holder.kill()
        self.holder.wait()


class Machines:
    """Machines that reach each other and are reached from here. A context: all is gone at its end."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._machines: list[Machine] = []
        self._ends = contextlib.ExitStack()
        self.network = ""
        """The first three numbers of their addresses. This machine is `.1`."""

    def __enter__(self) -> Machines:
        require_tools()
        with contextlib.ExitStack() as ends:
            self.network = ends.enter_context(own_network())
            switch = ends.enter_context(holder(["unshare", "--net", "--", "sleep", "infinity"])).pid
            until(lambda: namespace(switch, "net") != namespace(os.getpid(), "net"), what="the switch")
            in_network(switch, ["ip", "link", "add", "br0", "type", "bridge"])
            in_network(switch, ["ip", "link", "set", "br0", "up"])
            ends.enter_context(joined_from_here(switch, self.network))
            for number, name in enumerate(self._names):
                self._machines.append(ends.enter_context(self._boot(name, f"{self.network}.{11 + number}", switch)))
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def __getitem__(self, number: int) -> Machine:
        return self._machines[number]

    @contextlib.contextmanager
    def _boot(self, name: str, address: str, switch: int) -> Iterator[Machine]:
        words = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
        port = f"v-{name}"
        with holder([*words, "sh", "-c", _INIT.format(name=name)]) as held:
            until(lambda: namespace(held.pid, "net") != namespace(os.getpid(), "net"), what=f"{name}'s network")
            end = ["name", "eth0", "netns", str(held.pid)]
            in_network(switch, ["ip", "link", "add", port, "type", "veth", "peer", *end])
            in_network(switch, ["ip", "link", "set", port, "master", "br0", "up"])
            in_network(held.pid, ["ip", "addr", "add", f"{address}/24", "dev", "eth0"])
            in_network(held.pid, ["ip", "link", "set", "eth0", "up"])
            yield Machine(name, address, held, switch, port)
