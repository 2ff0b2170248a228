"""Two servers on one PostgreSQL database and one shared folder, as on two machines: each has a name of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.hosts import Hosts
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import until
from tests.postgresql import Server, run_server
from tests.server_people import create_run, make_run_token
from tests.server_process import ServerProcess

from trainmaster.dispatcher.store.leaders import Leader
from trainmaster.dispatcher.store.sessions import find_leader
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder

BASE = "/api/v1/workspaces/team"


class Peer(ServerProcess):
    """A server on a machine of its own, as far as names go."""

    def __init__(self, root: Path, host: str, token: str) -> None:
        self.root, self.host, self.token, self.port = root, host, token, 0
        self._options = ()
        self.start()

    def start(self) -> None:
        before = os.environ.get("TRAINMASTER_HOST_NAME")
        os.environ["TRAINMASTER_HOST_NAME"] = self.host
        try:
            super().start()
        finally:
            del os.environ["TRAINMASTER_HOST_NAME"]
            if before is not None:
                os.environ["TRAINMASTER_HOST_NAME"] = before


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with run_server() as server:
        yield server


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniSlurm]:
    """A cluster that both machines use; a test names it before the servers, which then find it."""
    with MiniSlurm(tmp_path_factory.mktemp("slurm") / "cluster", nodes=1) as cluster, variables(cluster):
        yield cluster


@pytest.fixture
def peers(database: Server, tmp_path: Path) -> Iterator[tuple[Peer, Peer]]:
    root = tmp_path / "root"
    words = [sys.executable, "-m", "trainmaster", "server", "init", "--root", str(root), "--json"]
    made = subprocess.run([*words, "--database", database.create_database()], check=True, capture_output=True)
    token = json.loads(made.stdout)["token"]
    alpha = Peer(root, "alpha", token)
    beta = Peer(root, "beta", token)
    alpha.create_workspace("team")
    yield alpha, beta
    for peer in (alpha, beta):
        if peer.process.poll() is None:
            peer.kill()
    leader = leader_of(root)
    if leader is not None:
        os.kill(leader.pid, signal.SIGTERM)
        until(lambda: leader_of(root) is None, what="the end of the dispatcher")


def leader_of(root: Path) -> Leader | None:
    return find_leader(read_address(WorkspaceFolder(root / "workspaces" / "team")))


def run_program(peer: Peer, text: str) -> str:
    """What a program of a person on the machine of a server prints."""
    folder = peer.root / "workspaces" / "team"
    start = f"from trainmaster import *\nws = Workspace(path={str(folder)!r})\n"
    environment = {**os.environ, "TRAINMASTER_HOST_NAME": peer.host}
    done = subprocess.run(
        [sys.executable, "-c", start + text], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def submit(peer: Peer, source: Path, script: str, target: str = "local") -> str:
    source.mkdir()
    (source / "train.py").write_text(script)
    estimator = f"Estimator({str(source)!r}, entry_script='train.py', compute_target={target!r}, user_managed=True)"
    return run_program(peer, f"print(Experiment(ws, 'servers').submit({estimator}).id)").split()[-1]


def get_run(peer: Peer, run_id: str) -> dict[str, Any]:
    answer = peer.request("GET", f"{BASE}/runs/{run_id}")
    return answer.json() if answer.status == 200 else {"status": f"HTTP {answer.status}"}


def test_a_request_reaches_the_dispatcher_through_either_server(peers: tuple[Peer, Peer]) -> None:
    alpha, beta = peers
    alpha.call("team", "experiments.ensure", name="there")
    leader = leader_of(alpha.root)
    assert leader is not None and leader.host == "alpha"
    names = [each["name"] for each in beta.call("team", "experiments.list")]
    assert names == ["there"]
    beta.call("team", "experiments.ensure", name="here")
    assert leader_of(alpha.root) == leader
    # A stream of events is passed on as it comes.
    run_id = submit(alpha, alpha.root.parent / "source", "print('done')")
    events = beta.request("GET", f"{BASE}/runs/{run_id}/events").body.decode()
    assert '"ended":true' in events.replace(" ", "") and get_run(beta, run_id)["status"] == "Completed"
    # The other server checks the caller again: a wrong token is refused by either.
    assert beta.request("GET", f"{BASE}/runs", token="tm_wrong").status == 401
    # Neither passes on what was passed on already.
    answer = beta.request("GET", f"{BASE}/runs", headers={"X-Trainmaster-Forwarded": "1"})
    assert answer.status == 503, (answer, leader_of(alpha.root))


def test_the_token_of_a_job_works_at_either_server(peers: tuple[Peer, Peer]) -> None:
    alpha, _ = peers
    run_id = create_run(alpha, "team")
    token = make_run_token(alpha, "team", run_id)
    path = f"{BASE}/operations/models.list"
    for peer in peers:
        assert peer.request("POST", path, {"query": {}}, token=token).status == 200, peer.host
        assert peer.request("POST", path, {"query": {}}, token=token[:-1] + "!").status == 401, peer.host
    alpha.call("team", "runs.finish", run_id=run_id, status="Completed")
    for peer in peers:
        assert peer.request("POST", path, {"query": {}}, token=token).status == 401, peer.host


def test_a_server_alone_is_killed(peers: tuple[Peer, Peer]) -> None:
    """Its dispatcher is alive, but nobody can reach it from the other machine: it is replaced."""
    alpha, beta = peers
    alpha.call("team", "experiments.ensure", name="there")
    before = leader_of(alpha.root)
    assert before is not None and before.host == "alpha"
    alpha.kill()
    path = f"{BASE}/operations/experiments.list"
    answer = until(lambda: (found := beta.request("POST", path, {})).status == 200 and found, what="an answer")
    assert [each["name"] for each in answer.json()["result"]] == ["there"]
    leader = leader_of(alpha.root)
    assert leader is not None and leader.host == "beta"
    until(lambda: not Path(f"/proc/{before.pid}").exists(), what="the end of the old dispatcher")


def test_the_other_server_takes_over(peers: tuple[Peer, Peer], tmp_path: Path) -> None:
    """Runs on hosts go on; those of the machine that failed are reported as lost."""
    alpha, beta = peers
    with Hosts(tmp_path / "hosts", 1) as hosts:
        folder = WorkspaceFolder(alpha.root / "workspaces" / "team")
        configuration = f"SshCompute.configuration([{hosts[0].name!r}], config_file={hosts.ssh_config!r})"
        run_program(alpha, f"ComputeTarget.create(ws, 'far', {configuration})")
        waiting = "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.05)\n"
        far = submit(
            alpha, tmp_path / "far", f"{waiting}from azureml.core import Run\nRun.get_context().log('x', 1)", "far"
        )
        near = submit(alpha, tmp_path / "near", "import time\ntime.sleep(600)")
        for run_id in (far, near):
            until(lambda run_id=run_id: get_run(alpha, run_id)["status"] == "Running", what=f"{run_id} at work")
        leader = leader_of(alpha.root)
        assert leader is not None and leader.host == "alpha"
        claim = json.loads((folder.run(near).node(0) / "agent.json").read_text())

        # The machine fails: everything on it ends at once.
        alpha.kill()
        os.kill(leader.pid, signal.SIGKILL)
        os.kill(claim["pid"], signal.SIGKILL)

        until(
            lambda: (found := leader_of(alpha.root)) is not None and found.host == "beta", what="the other dispatcher"
        )
        until(lambda: get_run(beta, near)["status"] == "Failed", what="the run of the machine that failed")
        assert "was on the machine alpha" in json.dumps(get_run(beta, near))
        assert get_run(beta, far)["status"] == "Running"
        (hosts[0].folder / "tmp" / "go").touch()
        until(lambda: get_run(beta, far)["status"] == "Completed", what="the run on the host")
        assert beta.request("GET", f"{BASE}/runs/{far}/metrics").json()["metrics"][0]["name"] == "x"


def test_a_run_on_slurm_goes_on(slurm: MiniSlurm, peers: tuple[Peer, Peer], tmp_path: Path) -> None:
    alpha, beta = peers
    folder, go = WorkspaceFolder(alpha.root / "workspaces" / "team"), tmp_path / "go"
    configuration = f"SlurmCompute.configuration('main', shared_folder={str(tmp_path)!r}, cpus_per_node=1)"
    run_program(alpha, f"ComputeTarget.create(ws, 'cluster', {configuration})")
    script = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\nprint('went on')"
    run_id = submit(alpha, tmp_path / "source", script, "cluster")
    until(lambda: get_run(alpha, run_id)["status"] == "Running", what="the run at work")
    leader, job = leader_of(alpha.root), (folder.run(run_id).path / "nodes" / "slurm.json").read_text()
    assert leader is not None and leader.host == "alpha"

    alpha.kill()
    os.kill(leader.pid, signal.SIGKILL)

    until(lambda: (found := leader_of(alpha.root)) is not None and found.host == "beta", what="the other dispatcher")
    until(lambda: get_run(beta, run_id)["status"] == "Running", what="the run with its next dispatcher")
    go.touch()
    until(lambda: get_run(beta, run_id)["status"] == "Completed", what="the end of the run")
    assert (
        json.loads((folder.run(run_id).path / "nodes" / "slurm.json").read_text())["job_id"]
        == json.loads(job)["job_id"]
    )
