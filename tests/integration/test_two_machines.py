"""Two servers on machines with names and networks of their own; PostgreSQL and the shared folder are on a third."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.machines import Machine, Machines
from tests.conftest import PATIENCE, until
from tests.postgresql import run_server

from trainmaster.dispatcher.store.sessions import find_leader
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = pytest.mark.timeout(300)

TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))


class Peer:
    """A server on a machine."""

    def __init__(self, machine: Machine, root: Path, token: str) -> None:
        self.machine, self._root, self._token = machine, root, token
        words = [TRAINMASTER, "server", "run", "--root", str(root), "--host", machine.address, "--port", "0"]
        with open(root / f"{machine.name}.log", "ab") as log:
            variables = {**os.environ, "TRAINMASTER_HOME": str(root / "home")}
            self.process = machine.start([*words, "--insecure"], variables, subprocess.PIPE, log)
        assert self.process.stdout is not None
        found = re.search(rb":(\d+)$", self.process.stdout.readline().strip())
        assert found, (root / f"{machine.name}.log").read_text()
        self._port = int(found[1])

    def ask(self, operation: str, **arguments: Any) -> Any:
        """The result of an operation, or None if there is no answer."""
        answer = self.send("POST", f"/api/v1/workspaces/team/operations/{operation}", arguments)
        return answer["result"] if answer is not None else None

    def send(self, method: str, path: str, body: Any) -> Any:
        """The answer to a request, or None."""
        connection = http.client.HTTPConnection(self.machine.address, self._port, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        except OSError:
            return None
        finally:
            connection.close()
        return json.loads(text) if answer.status == 200 else None

    def list_experiments(self) -> list[str] | None:
        found = self.ask("experiments.list")
        return None if found is None else sorted(each["name"] for each in found)


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[tuple[Peer, Peer]]:
    root = tmp_path / "root"
    with Machines(["alpha", "beta"]) as machines, run_server(address=f"{machines.network}.1") as database:
        words = [TRAINMASTER, "server", "init", "--root", str(root), "--json", "--database", database.create_database()]
        token = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["token"]
        alpha, beta = (Peer(machine, root, token) for machine in (machines[0], machines[1]))
        try:
            assert alpha.send("POST", "/api/v1/workspaces", {"name": "team"})
            yield alpha, beta
        finally:
            for peer in (alpha, beta):
                peer.machine.kill()
                peer.process.communicate()


def find_leading_host(root: Path) -> str:
    leader = find_leader(read_address(WorkspaceFolder(root / "workspaces" / "team")))
    return leader.host if leader is not None else ""


def test_a_machine_that_was_cut_off_or_failed_is_replaced(peers: tuple[Peer, Peer], tmp_path: Path) -> None:
    alpha, beta = peers
    root = tmp_path / "root"
    assert alpha.ask("experiments.ensure", name="first")
    assert find_leading_host(root) == "alpha"
    assert beta.list_experiments() == ["first"]

    # Alpha and its dispatcher are alive, but nobody can tell.
    alpha.machine.cut()
    until(lambda: beta.ask("experiments.ensure", name="second"), what="an answer of the other machine")
    assert find_leading_host(root) == "beta"

    # Back on the network, it knows that it is not in charge any more.
    alpha.machine.mend()
    until(lambda: alpha.list_experiments() == ["first", "second"], what="an answer of the first machine")
    assert find_leading_host(root) == "beta"

    beta.machine.kill()
    until(lambda: alpha.ask("experiments.ensure", name="third"), what="an answer of the machine that is left")
    assert find_leading_host(root) == "alpha"
    assert alpha.list_experiments() == ["first", "second", "third"]
