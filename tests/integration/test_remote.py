"""A laptop and a server: signing in, config files, lost connections, and what is logged without a network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import until
from tests.server_process import ServerProcess

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.backend.remote.http import HttpClient, Request, Response

COMMAND = [sys.executable, "-m", "trainmaster.cli"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("remote") / "root")
    process.create_workspace("vision")
    yield process
    process.end()


class Laptop:
    """A machine with a home of its own: nothing of the server's folders is known there."""

    def __init__(self, folder: Path, server: ServerProcess) -> None:
        self.home = folder / "laptop"
        self.home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINMASTER", "XDG"))}
        self.variables = {
            **kept,
            "HOME": str(self.home),
            "TRAINMASTER_HOME": str(self.home / ".trainmaster"),
            "TRAINMASTER_SERVER": server.url,
            "TRAINMASTER_TOKEN": server.token,
        }

    def __call__(self, *argv: str, code: int = 0, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *argv],
            cwd=self.home,
            env={**self.variables, **variables},
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, (argv, done.stdout, done.stderr)
        return done

    def start(self, program: str) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", program], cwd=self.home, env=self.variables, text=True, **pipes)

    @property
    def spools(self) -> list[Path]:
        return list((self.home / ".trainmaster" / "spool").glob("*/*/*"))


@pytest.fixture
def laptop(tmp_path: Path, server: ServerProcess) -> Laptop:
    return Laptop(tmp_path, server)


@pytest.fixture
def vision(server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRAINMASTER_SERVER", server.url)
    monkeypatch.setenv("TRAINMASTER_TOKEN", server.token)
    monkeypatch.setenv("TRAINMASTER_CACHE", str(tmp_path / "cache"))
    return Workspace.from_config()


def test_signing_in_and_out(laptop: Laptop, server: ServerProcess) -> None:
    plain = {"TRAINMASTER_SERVER": "", "TRAINMASTER_TOKEN": ""}
    assert (
        "cannot be reached"
        in laptop("login", "http://127.0.0.1:9", "--token-stdin", text="tm_x", code=5, **plain).stderr
    )
    assert "not" in laptop("login", server.url, "--token-stdin", text="tm_wrong\n", code=2, **plain).stderr
    done = laptop("login", server.url, "--token-stdin", text=f"{server.token}\n", **plain)
    assert f"Signed in to {server.url} as admin" in done.stdout and server.token not in done.stdout + done.stderr
    tokens = laptop.home / ".config" / "trainmaster" / "tokens.json"
    assert tokens.stat().st_mode & 0o777 == 0o600
    assert "admin" in laptop("whoami", server.url, **plain).stdout
    assert "admin" in laptop("whoami", **plain).stdout
    (laptop.home / ".azureml").mkdir()
    config = laptop.home / ".azureml" / "config.json"
    config.write_text(json.dumps({"server": server.url, "workspace_name": "vision"}))
    assert json.loads(laptop("workspace", "--json", **plain).stdout)["name"] == "vision"
    # Signed in to two: the project says which one is meant.
    kept = json.loads(tokens.read_text())
    tokens.write_text(json.dumps({"tokens": {**kept["tokens"], "https://other.example": "tm_other"}}))
    assert json.loads(laptop("whoami", "--json", **plain).stdout)["server"] == server.url
    config.unlink()
    assert "https://other.example" in laptop("whoami", code=2, **plain).stderr
    laptop("logout", "https://other.example", **plain)
    config.write_text(json.dumps({"server": server.url, "workspace_name": "vision"}))
    laptop("logout", **plain)
    assert "trainmaster login" in laptop("whoami", code=2, **plain).stderr
    assert f"trainmaster login {server.url}" in laptop("runs", code=2, **plain).stderr


def test_a_config_file_leads_back(vision: Workspace, tmp_path: Path, server: ServerProcess) -> None:
    vision.write_config(tmp_path)
    config = json.loads((tmp_path / ".azureml" / "config.json").read_text())
    assert (config["server"], config["workspace_name"]) == (server.url, "vision") and "path" not in config
    assert Workspace.from_config(tmp_path).get_details()["id"] == vision.get_details()["id"]
    assert "vision" in Workspace.list()


def test_what_needs_this_machine_is_refused_with_a_sentence(
    vision: Workspace, laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WorkspaceException, match="this machine cannot see it"):
        _ = vision.path
    with pytest.raises(WorkspaceException, match="there is no workspace 'missing'"):
        Workspace.get("missing")
    for command in ("up", "down"):
        assert "are on that server" in laptop(command, code=2).stderr
    (tmp_path / "train.py").write_text("")
    monkeypatch.setattr("trainmaster.shared.machine.boot_id", lambda: "another machine")
    with pytest.raises(UserErrorException, match="names no Python of the server"):
        Experiment(vision, "e").submit(
            Estimator(str(tmp_path), entry_script="train.py", compute_target="local", user_managed=True)
        )


def test_an_unchanged_snapshot_is_one_request(
    vision: Workspace, server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    exchange = HttpClient._exchange

    def note(client: HttpClient, request: Request) -> Response:
        # Earlier tests in this process may still deliver what they have logged to other servers and workspaces.
        if str(client.address) == server.url and "/vision/" in request.path:
            sent.append(f"{request.method} {request.path.partition('/vision/')[2].partition('/')[0]}")
        return exchange(client, request)

    monkeypatch.setattr(HttpClient, "_exchange", note)
    source = tmp_path / "source"
    source.mkdir()
    for number in range(20):
        (source / f"{number}.py").write_text(f"x = {number} + {os.getpid()}\n")
    first = vision.backend.contents.take_snapshot(source)
    assert sent == ["HEAD snapshots", "POST contents", *["PUT contents"] * 20, "PUT snapshots"]
    sent.clear()
    assert vision.backend.contents.take_snapshot(source).id == first.id
    assert sent == ["HEAD snapshots"]
    sent.clear()
    (source / "0.py").write_text(f"x = 'changed' + {os.getpid()}\n")
    assert vision.backend.contents.take_snapshot(source).id != first.id
    assert sent == ["HEAD snapshots", "POST contents", "PUT contents", "PUT snapshots"], "only what changed"


def test_waiting_goes_on_through_a_restart_of_the_server(vision: Workspace, server: ServerProcess) -> None:
    run = Experiment(vision, "restarts").start_logging(snapshot_directory=None)
    seen: list[str] = []

    def wait() -> None:
        with vision.connection.watch(run.id) as watch:
            seen.extend(news["status"] for news in watch)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: seen, what="the first state")
    server.kill()
    server.start()
    run.log("m", 1)
    run.complete()
    thread.join(120)
    assert not thread.is_alive() and seen[-1] == "Completed"
    assert run.get_metrics() == {"m": 1}


PROGRAM = """
import sys
from pathlib import Path
from trainmaster import Experiment, Workspace
run = Experiment(Workspace.from_config(), 'laptop').start_logging(snapshot_directory=None)
run.log('m', 0)
print(run.id, flush=True)
sys.stdin.readline()
for number in range(1, 4):
    run.log('m', number)
print('logged', flush=True)
sys.stdin.readline()
Path('outputs/model.txt').write_text('weights')
run.complete()
print(run.status, flush=True)
"""


def test_a_program_goes_on_without_a_network_and_sync_delivers_the_rest(
    laptop: Laptop, server: ServerProcess, vision: Workspace
) -> None:
    program = laptop.start(PROGRAM)
    assert program.stdout is not None and program.stdin is not None
    run_id = program.stdout.readline().strip()
    server.kill()
    out, notices = program.communicate("\n\n", timeout=120)
    assert (program.returncode, out) == (0, "logged\nCompleted\n"), notices
    assert notices.count("does not answer") == 1 and "'trainmaster sync' sends them" in notices
    server.start()
    assert len(laptop.spools) == 1
    both = [subprocess.Popen([*COMMAND, "sync"], cwd=laptop.home, env=laptop.variables) for _ in range(2)]
    assert [each.wait(120) for each in both] == [0, 0]
    run = vision.get_run(run_id)
    assert run.get_metrics() == {"m": [0, 1, 2, 3]}
    assert run.get_status() == "Completed"
    assert "outputs/model.txt" in run.get_file_names()
    assert laptop.spools == []
    assert "has been sent" in laptop("sync").stderr


def test_what_a_killed_program_logged_is_delivered(laptop: Laptop, server: ServerProcess, vision: Workspace) -> None:
    program = laptop.start(PROGRAM)
    assert program.stdout is not None and program.stdin is not None
    run_id = program.stdout.readline().strip()
    server.kill()
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "logged\n"
    program.send_signal(signal.SIGKILL)
    program.communicate(timeout=120)
    assert "cannot be reached" in laptop("sync", code=5).stdout
    server.start()
    assert run_id in laptop("sync").stdout
    assert vision.get_run(run_id).get_metrics() == {"m": [0, 1, 2, 3]}
    assert laptop.spools == []
