"""Slurm through a login node, the pure parts: paths on the cluster, and files that are already here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from trainmaster.engines.engine import EngineContext, Nodes
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.engines.remote.connection import Connection, HostFacts
from trainmaster.engines.remote.environments import RemoteEnvironment
from trainmaster.engines.remote.host import SshHost, login_of, root_of
from trainmaster.engines.remote.mirror import SharedMirror
from trainmaster.engines.slurm.command_channel import CommandChannel
from trainmaster.engines.slurm.engine import SlurmEngine
from trainmaster.engines.slurm.job_files import job_files
from trainmaster.engines.slurm.login import LoginNodes
from trainmaster.environments.prefix import PYTHON_THERE
from trainmaster.job.agent.tokens import host_token
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec, JobSpec
from trainmaster.shared.records import TargetRecord

THERE = HostFacts(
    root="/shared/hosts/w",
    python="/usr/bin/python3",
    version=(3, 6, 8),
    machine="x86_64",
    host="login1",
    address="10.0.0.1",
    cpus=4,
    memory=0,
    gpus=0,
    free=0,
    user=1000,
    variables={"PATH": "/usr/bin", "HOME": "/home/me"},
)
TARGET = TargetRecord(
    "cluster", "slurm-ssh", 2, 0, 0, {"login": "me@login:2222", "shared_folder": "~/tm", "private_key_file": "/k"}
)


def nodes_in(workspace: Path, attempt: int = 1) -> Nodes:
    return Nodes("r", RunFolder(workspace / "runs" / "r", attempt), 2, TARGET, (0, 1))


def plan(node: int, folder: Path) -> dict:
    env = {"PATH": "/env/bin:/my/bin", "HOME": "/home/laptop", "MASTER_ADDR": host_token(0)}
    process = {"rank": node, "argv": [PYTHON_THERE, f"{folder}/code/train.py"], "env": env, "cwd": f"{folder}/code"}
    return {"node": node, "hosts": f"{folder}/nodes/gang.json", "processes": [process], "notify": "/s", "links": []}


def test_the_login_node_of_a_target(tmp_path):
    (tmp_path / "workspace.json").write_text(json.dumps({"id": "w"}))
    host = login_of(TARGET)
    assert (host.name, host.username, host.port, host.private_key_file) == ("login", "me", 2222, "/k")
    assert root_of(host, WorkspaceFolder(tmp_path)) == "~/tm/hosts/w"


def test_plans_have_the_paths_and_variables_of_the_cluster(tmp_path):
    nodes = nodes_in(tmp_path)
    spec = JobSpec(
        "/project",
        "cluster",
        script="train.py",
        environment=EnvironmentSpec(user_managed=True),
        inherited_variables={"PATH": "/my/bin", "HOME": "/home/laptop"},
    )
    plans = [plan(number, nodes.folder.path) for number in range(2)]
    plans[0]["ranks"] = []
    files = job_files(nodes, spec, WorkspaceFolder(tmp_path), plans, THERE, RemoteEnvironment())
    assert list(files) == ["runs/r/nodes/0/ranks.json", "runs/r/nodes/0/plan.json", "runs/r/nodes/1/plan.json"]
    run = "/shared/hosts/w/runs/r"
    assert files["runs/r/nodes/0/ranks.json"]["hosts"] == f"{run}/nodes/gang.json"
    moved = files["runs/r/nodes/1/plan.json"]
    (process,) = moved["processes"]
    assert process["argv"] == ["/usr/bin/python3", f"{run}/code/train.py"]
    # The job replaces the tokens of machines.
    assert process["env"] == {"PATH": "/env/bin:/usr/bin", "HOME": "/home/me", "MASTER_ADDR": host_token(0)}
    assert moved["notify"] is None
    assert str(tmp_path) not in json.dumps(files)


def test_the_next_attempt_has_folders_of_its_own(tmp_path):
    nodes = nodes_in(tmp_path, attempt=2)
    spec = JobSpec("/project", "cluster", script="train.py", environment=EnvironmentSpec(user_managed=True))
    files = job_files(nodes, spec, WorkspaceFolder(tmp_path), [plan(0, nodes.folder.path)], THERE, RemoteEnvironment())
    assert list(files) == ["runs/r/attempts/2/nodes/0/plan.json"]


def test_what_is_here_is_not_sent_again(tmp_path):
    nodes = nodes_in(tmp_path)
    mirror = SharedMirror(nodes.folder)
    mirror.take({"grown": "files/azureml-logs/70_driver_log.txt", "offset": 0}, b"line\n")
    mirror.take({"grown": "nodes/slurm-7.log", "offset": 0}, b"ab")
    mirror.take({"grown": "nodes/1/agent.log", "offset": 0}, b"abc")
    mirror.take({"work": "code/outputs/m", "offset": 0, "start": 0, "last": True, "mode": 0o644}, b"weights")
    mirror.take({"state": "code/outputs/m", "is": [1, 2, 7]}, b"")
    mirror.finish()
    again = SharedMirror(nodes.folder)
    sizes = {"files/azureml-logs/70_driver_log.txt": 5, "nodes/slurm-7.log": 2, "nodes/1/agent.log": 3}
    assert again.sizes() == sizes
    assert again.states() == {"code/outputs/m": [1, 2, 7]}
    assert (nodes.folder.code / "outputs" / "m").read_bytes() == b"weights"


def test_results_of_all_nodes_are_seen_at_once(tmp_path):
    """The host sends results last, so they need not be held back."""
    nodes = nodes_in(tmp_path)
    mirror = SharedMirror(nodes.folder)
    for number in range(2):
        assert mirror.take({"small": f"nodes/{number}/result.json"}, b"{}") == f"nodes/{number}/result.json"
        assert (nodes.folder.node(number) / "result.json").exists()


class _LostForWriters:
    """A lost connection whose loss only writers have noticed."""

    host = SshHost("login")
    facts = THERE

    def start_pings(self, seconds: float) -> asyncio.Task[None]:
        return asyncio.create_task(asyncio.sleep(0))

    async def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        if header["op"] != "desk":
            raise Unreachable("host login closed the connection")

    async def receive_within(self, seconds: float) -> Any:
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


def test_a_connection_is_lost_for_all_as_soon_as_one_has_noticed() -> None:
    async def main() -> tuple[Any, list[Any]]:
        channel = await CommandChannel.start(cast("Connection", _LostForWriters()), 60.0, lambda *report: None)
        answers = await asyncio.gather(
            *(channel.run_command(["scancel"], "", 1.0) for _ in range(2)), return_exceptions=True
        )
        lost = channel.lost.result() if channel.lost.done() else None
        await channel.close()
        return lost, answers

    lost, answers = asyncio.run(main())
    assert isinstance(lost, Unreachable)
    assert answers == [lost, lost]


def test_targets_of_one_login_node_share_its_connection(tmp_path: Path) -> None:
    (tmp_path / "workspace.json").write_text(json.dumps({"id": "w"}))

    async def main() -> None:
        sites = LoginNodes(EngineContext(WorkspaceFolder(tmp_path), lambda run_id, event: None))
        other = replace(TARGET, options={**TARGET.options, "login": "me@elsewhere"})
        assert sites.find(TARGET) is sites.find(replace(TARGET, name="another", nodes=9))
        assert sites.find(TARGET) is not sites.find(other)
        assert not SlurmEngine(EngineContext(WorkspaceFolder(tmp_path), lambda run_id, event: None), sites).shares_files

    asyncio.run(main())
