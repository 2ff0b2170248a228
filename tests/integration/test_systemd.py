"""The units in `deploy/`, started by a real systemd, by the commands that the guide gives."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import until
from tests.systemd_machine import INSTALLED, Machine

pytestmark = pytest.mark.timeout(300)

UNITS = Path(__file__).resolve().parents[2] / "deploy"
UNIT = "trainmaster-server.service"
WAITS = """
import os, time
print("waits", os.getpid(), flush=True)
while not os.path.exists("open"):
    time.sleep(0.1)
"""


class Team:
    """A machine with a server of each unit, and an account that uses them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.token = self._init("trainmaster", "/var/lib/trainmaster", "--home-dir", "/var/lib/trainmaster")
        self.token_of_vision = self._init("vision", "/var/lib/trainmaster-vision", "--create-home")
        machine.run("sh", "-c", "echo '{\"port\": 8771}' > /var/lib/trainmaster-vision/server/server.json")
        machine.run("useradd", "--create-home", "alice")
        machine.run("mkdir", "/home/alice/project", user="alice")
        machine.run("sh", "-c", 'echo "$1" > /home/alice/project/train.py', "-", WAITS)

    def _init(self, account: str, folder: str, *home: str) -> str:
        """Create an account and a server, and return the token of its administrator."""
        self.machine.run("useradd", "--system", *home, account)
        self.machine.run("install", "-d", "-o", account, "-g", account, "-m", "700", folder)
        init = (f"{INSTALLED}/bin/trainmaster", "server", "init", "--root", f"{folder}/server", "--json")
        return str(json.loads(self.machine.run(*init, user=account))["token"])

    def wait(self, port: int = 8765) -> None:
        """Wait until the server answers."""
        address = f"http://127.0.0.1:{port}/health"
        until(lambda: self.machine.attempt("curl", "--fail", "--silent", address).returncode == 0, what="the server")

    def call(self, *words: str, token: str = "", port: int = 8765) -> str:
        """What a command of Trainmaster prints to alice, who reaches the server over HTTP."""
        server = {"TRAINMASTER_SERVER": f"http://127.0.0.1:{port}", "TRAINMASTER_TOKEN": token or self.token}
        return self.machine.run("trainmaster", *words, user="alice", variables={"HOME": "/home/alice", **server})

    def show(self, name: str) -> str:
        """A property of the unit."""
        return self.machine.run("systemctl", "show", "--value", "--property", name, UNIT).strip()

    def processes(self) -> list[str]:
        """The ids of the processes that run alice's script."""
        return self.machine.attempt("pgrep", "--full", "python train.py").stdout.split()

    def submit(self) -> tuple[str, list[str]]:
        """Submit alice's script, and wait for its process."""
        (run,) = self.call("submit", "/home/alice/project", "train.py", "--workspace", "vision").split()
        until(lambda: "waits" in self.call("logs", run, "--workspace", "vision"), what="the run")
        return run, self.processes()

    def state(self, run: str) -> str:
        return str(json.loads(self.call("show", run, "--workspace", "vision", "--json"))["status"])


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    for unit in ("trainmaster-server.service", "trainmaster-server@.service"):
        shutil.copy(UNITS / unit, machine.file(f"/etc/systemd/system/{unit}"))
    with machine:
        team = Team(machine)
        machine.run("systemctl", "enable", "--now", UNIT)
        team.wait()
        team.call("workspace", "create", "vision")
        yield team


def test_a_server_that_was_killed_is_started_again_and_its_runs_go_on(team: Team) -> None:
    run, processes = team.submit()
    killed = team.show("MainPID")
    team.machine.run("kill", "-9", killed)
    until(lambda: team.show("MainPID") not in (killed, "0"), what="the next server")
    team.wait()
    assert team.processes() == processes
    assert team.state(run) == "Running"
    team.machine.run("touch", f"/var/lib/trainmaster/server/workspaces/vision/runs/{run}/code/open")
    until(lambda: team.state(run) == "Completed", what="the end of the run")


def test_a_server_that_is_stopped_exits_with_0_and_its_runs_go_on(team: Team) -> None:
    run, processes = team.submit()
    team.machine.run("systemctl", "stop", UNIT)
    assert (team.show("ActiveState"), team.show("Result"), team.show("ExecMainStatus")) == ("inactive", "success", "0")
    assert team.processes() == processes
    team.machine.run("systemctl", "start", UNIT)
    team.wait()
    assert team.state(run) == "Running"
    team.call("cancel", run, "--workspace", "vision")
    until(lambda: team.state(run) == "Canceled", what="the end of the run")
    assert not team.processes()


def test_the_server_starts_with_the_machine_and_says_what_became_of_its_runs(team: Team) -> None:
    run, _ = team.submit()
    team.machine.reboot()
    team.wait()
    until(lambda: team.state(run) == "Failed", what="the end of the run")
    assert "vision" in team.call("workspace", "list")


def test_a_server_of_its_own_account_is_closed_to_others(team: Team) -> None:
    team.machine.run("systemctl", "enable", "--now", "trainmaster-server@vision")
    team.wait(8771)
    at_vision = {"token": team.token_of_vision, "port": 8771}
    team.call("workspace", "create", "vision", **at_vision)
    (run,) = team.call("submit", "/home/alice/project", "train.py", "--workspace", "vision", **at_vision).split()
    until(lambda: "waits" in team.call("logs", run, "--workspace", "vision", **at_vision), what="the run")
    (process,) = team.processes()
    assert team.machine.run("stat", "--format=%U", f"/proc/{process}").strip() == "vision"
    code = f"/var/lib/trainmaster-vision/server/workspaces/vision/runs/{run}/code"
    assert team.machine.attempt("ls", code, user="trainmaster").returncode != 0
    team.machine.run("touch", f"{code}/open")
