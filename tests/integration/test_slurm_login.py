"""A cluster that is used from a laptop: a real Slurm behind a real sshd, which do not see the laptop's files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.hosts import REPOSITORY
from tests.cluster.login import LoginNode, View
from tests.cluster.slurm import MiniSlurm
from tests.conda_channel import PLACEHOLDER, make_channel, running_python, tinytool
from tests.conftest import PATIENCE, dispatcher_handle, end_workspace, ended, until, wait_gone

from trainmaster import Environment, Estimator, Experiment, Workspace
from trainmaster.cli.entry import run as command
from trainmaster.engines.remote import contents
from trainmaster.engines.remote.cleanup import Cleanup
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.host import SshHost
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.environments.conda_channels import SETTING as CHANNELS
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi
from trainmaster.sdk.run.run import Run
from trainmaster.shared.folders import RunFolder, WorkspaceFolder

# Ranks on the pretended machines would otherwise share memory that they do not share.
TCP = {"OMPI_MCA_btl": "self,tcp"}
HEAD = "import os, sys, time\nfrom azureml.core import Run\nrun = Run.get_context()\n"
WAITS = "import time\nprint('here', flush=True)\ntime.sleep(600)\n"
# In place of squeue and sbatch: notes when it was called, and is the real one when nobody holds it.
WATCHED = """#!/bin/sh
date +%s.%N >> {there}/{name}.called
if mkdir {there}/hold/{name}; then
    while [ -d {there}/hold/{name} ]; do sleep 0.05; done
fi 2> /dev/null
exec {real} "$@"
"""


@dataclass(frozen=True)
class Place:
    """The two sides."""

    laptop: Path
    there: Path
    slurm: MiniSlurm
    login: LoginNode

    def configuration(self, **settings: Any):
        known = {"login": "login", "config_file": self.login.ssh_config, "shared_folder": str(self.there / "shared")}
        return SlurmCompute.configuration(**{**known, "max_nodes": 2, "cpus_per_node": 1, **settings})

    @property
    def login_python(self) -> str:
        """The version of the login node's own Python, such as 3.11."""
        asked = """python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])'"""
        return subprocess.check_output(["ssh", "-F", self.login.ssh_config, "login", asked], text=True).strip()

    def called(self, name: str) -> list[float]:
        """When a command was called there, in seconds."""
        noted = self.there / f"{name}.called"
        return [float(line) for line in noted.read_text().split()] if noted.exists() else []

    def runs(self) -> list[str]:
        """The folders of runs at the cluster."""
        return [path.name for path in self.there.glob("shared/hosts/*/runs/*")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    laptop, there = tmp_path_factory.mktemp("laptop"), tmp_path_factory.mktemp("there")
    with (
        View(there / "view", hidden=[laptop, REPOSITORY]) as view,
        MiniSlurm(there / "cluster", nodes=2, inside=view.words) as slurm,
    ):
        (there / "bin").mkdir()
        for name in ("squeue", "sbatch"):
            real = subprocess.check_output(["which", name], env=slurm.environment, text=True).strip()
            (there / "bin" / name).write_text(WATCHED.format(there=there, name=name, real=real))
            (there / "bin" / name).chmod(0o755)
        path = f"{there}/bin:/usr/local/bin:/usr/bin:/bin"
        variables = {"SLURM_CONF": slurm.environment["SLURM_CONF"], "PATH": path}
        with LoginNode(there / "login", view, variables) as login:
            yield Place(laptop, there, slurm, login)


@pytest.fixture(scope="module")
def ws(place: Place) -> Iterator[Workspace]:
    workspace = Workspace.create("laptop", path=place.laptop / "ws", show_output=False)
    ComputeTarget.create(workspace, "cluster", place.configuration(lost_after_seconds=30))
    # A node is a whole machine: others have to wait.
    ComputeTarget.create(workspace, "whole", place.configuration(lost_after_seconds=30, cpus_per_node=None))
    yield workspace
    end_workspace(workspace.path)


@pytest.fixture
def send(ws: Workspace, place: Place, project: Callable[..., Path]) -> Iterator[Callable[..., Run]]:
    """Submits a script given as text; what still runs after the test is ended, so that the next one finds room."""
    sent: list[Run] = []

    def submit(script: str, **settings: Any) -> Run:
        known = {"compute_target": "cluster", "user_managed": True}
        estimator = Estimator(str(project(train=script)), entry_script="train.py", **{**known, **settings})
        sent.append(Experiment(ws, "laptop").submit(estimator))
        return sent[-1]

    yield submit
    place.login.mend()
    for run in sent:
        run.cancel()
    for run in sent:
        ended(run)


def folder_of(run: Run) -> RunFolder:
    return WorkspaceFolder(run.experiment.workspace.path).run(run.id)


def log_of(run: Run, name: str = "70_driver_log.txt") -> str:
    path = folder_of(run).logs / name
    return path.read_text() if path.exists() else ""


def job_of(run: Run) -> str:
    noted = folder_of(run).path / "nodes" / "slurm.json"
    return until(lambda: noted.exists() and json.loads(noted.read_text())["job_id"], what="a job")


def until_said(run: Run, word: str = "here", name: str = "70_driver_log.txt") -> None:
    until(lambda: word in log_of(run, name), what=f"{word!r} in the log")


def until_there(path: Path) -> str:
    """Lines of a script that waits for a file."""
    return f"while not os.path.exists({str(path)!r}):\n    time.sleep(0.05)\n"


def kill_dispatcher(ws: Workspace) -> None:
    folder = WorkspaceFolder(ws.path)
    handle = dispatcher_handle(folder)
    os.kill(int(folder.lock.read_text()), signal.SIGKILL)
    wait_gone(handle)


def test_one_script(send, place):
    """Arguments go there; logs, metrics and files come back; nothing of the run stays there."""
    run = send(
        HEAD + "print('at', os.getcwd(), sys.argv[1:])\nrun.log('loss', 0.5)\n"
        "os.makedirs('outputs', exist_ok=True)\nopen('outputs/model.txt', 'w').write('weights')\n",
        script_params={"--epochs": 3},
    )
    details = ended(run)
    assert details["status"] == "Completed", (details.get("error"), log_of(run))
    assert f"at {place.there}/shared/hosts/" in log_of(run)
    assert "['--epochs', '3']" in log_of(run)
    assert run.get_metrics() == {"loss": 0.5}
    run.download_file("outputs/model.txt", str(place.there / "model.txt"))
    assert (place.there / "model.txt").read_text() == "weights"
    assert details["properties"]["slurm.job_id"] == job_of(run)
    assert details["properties"]["slurm.login"] == "login"
    until(lambda: run.id not in place.runs(), what="the end of its folder there")


def test_resume(send, ws):
    """The checkpoint and the code of a run go there again."""
    first = send(
        HEAD + "place = 'outputs/checkpoint'\nstart = int(open(place).read()) if os.path.exists(place) else 0\n"
        "open(place, 'w').write(str(start + 2))\nprint('from', start)\nsys.exit(start == 0)\n"
    )
    assert ended(first)["status"] == "Failed" and "from 0" in log_of(first)
    second = first.resume()
    details = ended(second)
    assert details["status"] == "Completed", (details.get("error"), log_of(second))
    assert "from 2" in log_of(second)
    assert (folder_of(second).files / "outputs" / "checkpoint").read_text() == "4"


def test_mpi_on_two_nodes(send):
    """An environment that was built here, with Open MPI in it, runs there."""
    script = "import os\nprint('rank', os.environ['RANK'], os.environ['NODE_RANK'], os.environ['WORLD_SIZE'])"
    run = send(script, node_count=2, distributed_training=Mpi(2), environment_variables=TCP, user_managed=False)
    details = ended(run)
    assert details["status"] == "Completed", (details.get("error"), log_of(run, "70_mpirun_log.txt"))
    for rank in range(4):
        assert log_of(run, f"70_driver_log_{rank}.txt") == f"rank {rank} {rank // 2} 4\n"


def test_data(send, ws, tmp_path):
    """Data is brought to the cluster, and what the script adds to it comes back to the datastore."""
    store = ws.get_default_datastore()
    (tmp_path / "given" / "deep").mkdir(parents=True)
    (tmp_path / "given" / "deep" / "words").write_text("brought")
    store.upload(str(tmp_path / "given"), target_path="given", show_progress=False)
    (ws.path / "datastore" / "mounted").mkdir()
    script = (
        "import os, sys\nsource, mounted, uploaded = sys.argv[2::2]\n"
        "text = open(os.path.join(source, 'deep', 'words')).read()\n"
        "for place in (mounted, uploaded):\n    open(os.path.join(place, 'result'), 'w').write(text + ' back')\n"
    )
    given = {
        "--source": store.path("given").as_mount(),
        "--mounted": store.path("mounted").as_mount(),
        "--uploaded": store.path("uploaded").as_upload(),
    }
    run = send(script, script_params=given)
    details = ended(run)
    assert details["status"] == "Completed", (details.get("error"), log_of(run))
    for place in ("mounted", "uploaded"):
        store.download(str(tmp_path / "back"), prefix=place, show_progress=False)
        assert (tmp_path / "back" / place / "result").read_text() == "brought back"


def test_cancelled_on_the_way(send, ws, place, tmp_path):
    """A run that is cancelled while its data is on its way never comes to Slurm, and leaves nothing."""
    with open(tmp_path / "zeros", "wb") as file:
        file.truncate(512 * 1024**2)
    (ws.path / "datastore" / "big").symlink_to(tmp_path)
    before = len(place.called("sbatch"))
    run = send("print(1)", script_params={"--big": ws.get_default_datastore().path("big").as_mount()})
    until(lambda: "uploading the data" in run.get_details().get("waitingFor", ""), what="that it is on its way")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert len(place.called("sbatch")) == before
    until(lambda: run.id not in place.runs(), what="the end of its folder there")


@pytest.mark.parametrize("how", ["cut", "fall_silent"])
def test_the_connection_is_lost_while_it_runs(send, place, how):
    """The job goes on, and all it wrote meanwhile comes, once, when there is a connection again."""
    seen, go = place.there / f"seen-{how}", place.there / f"go-{how}"
    run = send(
        HEAD + "print('here', flush=True)\n"
        f"{until_there(seen)}"
        "for number in range(100):\n    print('line', number, flush=True)\n    run.log('number', number)\n"
        f"open({str(go)!r}, 'w').close()\n"
    )
    until_said(run)
    until(lambda: run.get_status() == "Running", what="that it is known to run")
    job = job_of(run)
    getattr(place.login, how)()
    seen.touch()
    until(go.exists, what="what the script does while nobody looks")
    assert run.get_status() == "Running"
    place.login.mend()
    assert ended(run)["status"] == "Completed"
    assert log_of(run) == "here\n" + "".join(f"line {number}\n" for number in range(100))
    assert run.get_metrics()["number"] == list(range(100))
    assert job_of(run) == job


def test_the_connection_is_cut_while_sbatch_works(send, place):
    """Nobody knows whether it came to a job: the run runs once, and no job stays behind."""
    hold, began = place.there / "hold", place.there / "began"
    hold.mkdir()
    run = send(f"open({str(began)!r}, 'a').write('x')\nimport time\ntime.sleep(1)\n")
    # The first sbatch waits there until its folder is removed.
    until((hold / "sbatch").exists, what="an sbatch")
    before = len(place.called("sbatch"))
    place.login.cut()
    place.login.mend()
    until(lambda: len(place.called("sbatch")) > before, what="another sbatch")
    # Not `rmtree`: an sbatch that has just come may write into it.
    hold.rename(place.there / "released")
    assert ended(run)["status"] == "Completed"
    assert began.read_text() == "x"
    until(lambda: not place.slurm.jobs(), what="the end of all jobs")


def test_the_job_that_came_second_is_not_the_run(send, place, ws):
    """A dispatcher that noted the number of a job that found the run taken follows the one that has it."""
    go = place.there / "go3"
    run = send(HEAD + f"print('here', flush=True)\n{until_there(go)}")
    until_said(run)
    job = job_of(run)
    kill_dispatcher(ws)
    name = place.slurm.run("squeue", "-h", "-j", job, "-o", "%j").strip()
    second = place.slurm.run("sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", "--wrap=true").strip()
    noted = folder_of(run).path / "nodes" / "slurm.json"
    noted.write_text(json.dumps({**json.loads(noted.read_text()), "job_id": second}))
    until(lambda: run.get_status() == "Running", what="that it is known to run")
    until(lambda: json.loads(noted.read_text())["job_id"] == job, what="the number of the job that has the run")
    go.touch()
    assert ended(run)["status"] == "Completed"


def test_what_cannot_be_kept_here_comes_later(send, place, ws):
    go = place.there / "go4"
    script = HEAD + f"print('here', flush=True)\n{until_there(go)}open('outputs/model', 'w').write('weights')\n"
    run = send(script, compute_target="cluster")
    until_said(run)
    in_the_way = folder_of(run).code / "outputs" / "model"
    in_the_way.mkdir(parents=True)
    go.touch()
    log = WorkspaceFolder(ws.path).log
    until(lambda: "what came from host login could not be stored" in log.read_text(), what="that it is told")
    in_the_way.rmdir()
    assert ended(run)["status"] == "Completed"
    assert (folder_of(run).files / "outputs" / "model").read_text() == "weights"


def test_the_dispatcher_dies_and_the_job_ends_meanwhile(send, place, ws):
    go = place.there / "go2"
    script = HEAD + f"run.log('a', 1)\nprint('here', flush=True)\n{until_there(go)}run.log('a', 2)\n"
    run = send(script, compute_target="whole")
    until_said(run)
    waiting = send(HEAD + "run.log('a', 3)", compute_target="whole", node_count=2, distributed_training=Gloo())
    until(lambda: place.slurm.jobs("PENDING") == [job_of(waiting)], what="a job that waits")
    kill_dispatcher(ws)
    go.touch()
    until(lambda: not place.slurm.jobs(), what="the end of both jobs without a dispatcher")
    assert [ended(each)["status"] for each in (run, waiting)] == ["Completed", "Completed"]
    assert run.get_metrics() == {"a": [1, 2]}
    assert {rank: found["a"] for rank, found in waiting.get_metrics_by_rank().items()} == {0: 3, 1: 3}


def test_cancelled_while_it_runs_and_while_it_waits(send, place):
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
        "print('here', flush=True)\ntime.sleep(600)\n"
    )
    run = send(script, compute_target="whole", node_count=2, distributed_training=Gloo())
    until_said(run, name="70_driver_log_1.txt")
    waiting = send("print(1)", compute_target="whole")
    jobs = [job_of(each) for each in (run, waiting)]
    until(lambda: "Resources" in waiting.get_details().get("waitingFor", ""), what="what it waits for, in words")
    for each in (waiting, run):
        each.cancel()
    assert {ended(each)["status"] for each in (run, waiting)} == {"Canceled"}
    assert "saved" in log_of(run, "70_driver_log_1.txt")
    until(lambda: not set(jobs) & set(place.slurm.jobs()), what="the end of all jobs")


def test_cancelled_while_the_login_node_is_not_to_be_reached(send, place):
    """It is ended as soon as somebody there can be told."""
    run = send(WAITS)
    until_said(run)
    job = job_of(run)
    place.login.cut()
    run.cancel()
    assert run.get_status() == "CancelRequested"
    assert job in place.slurm.jobs()
    place.login.mend()
    assert ended(run)["status"] == "Canceled"
    until(lambda: job not in place.slurm.jobs(), what="the end of its job")


def test_cancelled_behind_our_back(send, place):
    run = send(WAITS)
    until_said(run)
    place.slurm.run("scancel", job_of(run))
    details = ended(run)
    assert details["status"] == "Canceled"
    assert details["error"]["code"] == "CanceledInSlurm"


def test_preempted_goes_on_from_its_checkpoint(send, place):
    script = HEAD + (
        "rank = os.environ['RANK']\nmine = 'outputs/checkpoint' + rank\ndone = os.path.exists(mine)\n"
        "run.log('attempt', int(os.environ['TRAINMASTER_ATTEMPT']))\nopen(mine, 'a').write('x')\n"
        "print('here', flush=True)\ntime.sleep(0 if done else 600)\n"
    )
    run = send(script, compute_target="whole", node_count=2, distributed_training=Gloo())
    for rank in (0, 1):
        until_said(run, name=f"70_driver_log_{rank}.txt")
    place.slurm.run("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=true")
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    first, second = details["attempts"]
    assert first["error"]["code"] == "Preempted"
    assert second["status"] == "Completed"
    assert run.get_metrics()["attempt"].count(1) == run.get_metrics()["attempt"].count(2) == 2
    for rank in (0, 1):
        assert (folder_of(run).files / f"outputs/checkpoint{rank}").read_text() == "xx"
        assert log_of(run, f"70_driver_log_{rank}.txt") == "here\n"
        assert log_of(run, f"attempt_1/70_driver_log_{rank}.txt").startswith("here\n")


def test_many_runs_are_one_connection_and_one_question_a_second(send, place):
    before, made = len(place.called("squeue")), place.login.connections
    runs = [send(HEAD + "run.log('a', 1)\ntime.sleep(0.5)\n") for _ in range(8)]
    assert {ended(run)["status"] for run in runs} == {"Completed"}
    asked = place.called("squeue")[before:]
    assert len(asked) <= asked[-1] - asked[0] + 2
    # The kept one may have been cut by a test before; what is brought has its own, four at most.
    assert place.login.connections - made <= 5


def test_a_large_environment_holds_up_no_small_run(send, place, ws):
    """Its pool is stopped in the middle; others pass it, but for those that need the same."""
    own = place.login_python
    version = next(version for version in sorted(all_pythons(), reverse=True) if version != own and version >= "3.8")
    name = f"python{version}"
    # The first Python that is tried there: it takes its time, and is none in the end.
    held = place.there / "held"
    (place.there / "bin" / name).write_text(
        f"#!/bin/sh\necho tried >> {held}\nwhile [ -e {held} ]; do sleep 0.05; done\nfalse\n"
    )
    (place.there / "bin" / name).chmod(0o755)
    environment = Environment("large")
    environment.python.conda_dependencies.set_python_version(version)
    settings = {"environment_definition": environment, "user_managed": False}
    try:
        large = send("import sys\nprint(sys.version)", **settings)
        until(held.exists, what="its environment on the way")
        same = send("print('same')", **settings)
        until(
            lambda: "waiting for the uploads of other runs" in same.get_details().get("waitingFor", ""),
            what="that it waits",
        )
        assert ended(send("print('small')"))["status"] == "Completed"
        assert held.read_text() == "tried\n", "the other one waits until it is there"
    finally:
        (place.there / "bin" / name).unlink()
        held.unlink(missing_ok=True)
    for run in (large, same):
        assert ended(run)["status"] == "Completed", run.get_details().get("error")
    assert log_of(large).startswith(version)


CONDA = """
import pathlib, subprocess, sys, tinytool
print("prefix", sys.prefix)
for program in ("tinytool-say", "tinytool-script"):
    print(subprocess.check_output([program]).decode().strip())
share = pathlib.Path(sys.prefix, "share", "tinytool")
print("text", share.joinpath("where.txt").read_text().strip())
print("binary", share.joinpath("where.bin").read_bytes())
"""


@pytest.fixture
def conda(tmp_path_factory, tmp_path, monkeypatch) -> None:
    """Conda packages from a channel that is made on the spot."""
    address = make_channel(tmp_path_factory.mktemp("channel"), running_python(), tinytool())
    monkeypatch.setenv(CHANNELS, address)
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))


def test_conda_packages(send, ws, place, conda):
    """They hold the path at which they were built, and get that of the cluster; up to where they have room for it."""
    settings = {"conda_packages": ["tinytool"], "user_managed": False}
    far = place.there / "far away" / ("a" * 20)
    ComputeTarget.create(ws, "far", place.configuration(shared_folder=str(far)))
    ComputeTarget.create(ws, "too-far", place.configuration(shared_folder=str(far / ("a" * 200))))
    for name, folder in {"cluster": place.there / "shared", "far": far}.items():
        run = send(CONDA, compute_target=name, **settings)
        assert ended(run)["status"] == "Completed", run.get_details().get("error")
        told = log_of(run).splitlines()
        prefix = told[0].removeprefix("prefix ")
        assert prefix.startswith(f"{folder}/hosts/")
        assert told[1:4] == ["said 1.0", f"script {prefix}", f"text prefix={prefix}"]
        binary = b"\x7fBIN\0" + f"{prefix}/lib".encode().ljust(len(PLACEHOLDER) + len("/lib"), b"\0") + b"\0end"
        assert told[4] == f"binary {binary}"
    details = ended(send(CONDA, compute_target="too-far", **settings))
    assert details["status"] == "Failed"
    assert f"room for a path of {len(PLACEHOLDER)} characters" in details["error"]["message"]


def test_what_two_runs_need_is_sent_once(place, tmp_path, monkeypatch):
    """By two connections at the same time; the one waits for what the other sends, or sends the rest."""
    sent: list[str] = []
    send_file = Connection.send_file

    async def noted(self: Connection, header: dict[str, Any], *rest: Any) -> None:
        sent.append(header["name"])
        await send_file(self, header, *rest)

    monkeypatch.setattr(Connection, "send_file", noted)
    for number in range(6):
        (tmp_path / str(number)).write_bytes(bytes([number]) * (number + 1) * 4_000_000)
    found = [contents.content(tmp_path / str(number)) for number in range(6)]
    host = SshHost("login", config_file=place.login.ssh_config)

    async def bring(pool: UploadPool, wanted: list[contents.Content]) -> None:
        async with pool.turn() as connection:
            await contents.upload_contents(connection, wanted, contents.ignore_progress)
            assert await contents.is_missing(connection, "blobs/none")
            for each in wanted:
                assert not await contents.is_missing(connection, f"blobs/{each.name[:2]}/{each.name}")

    async def both() -> None:
        pool = UploadPool(host, f"{place.there}/shared/twice", 60, Cleanup(tmp_path / "left"))
        await asyncio.gather(bring(pool, found), bring(pool, found[::-1]), bring(pool, found[2:4]))
        await pool.close()

    asyncio.run(both())
    assert sorted(sent) == sorted(each.name for each in found)


def test_where_no_more_connections_are_to_be_had_one_is_used_in_turns(place, tmp_path):
    host = SshHost("login", config_file=place.login.ssh_config)
    (tmp_path / "file").write_text("content")

    async def bring(pool: UploadPool) -> None:
        async with pool.turn() as connection:
            await contents.upload_contents(connection, [contents.content(tmp_path / "file")], contents.ignore_progress)

    async def both() -> None:
        pool = UploadPool(host, f"{place.there}/shared/turns", 60, Cleanup(tmp_path / "left"))
        async with pool.turn():
            before = place.login.refused
            place.login.refuse_more()
            second = asyncio.create_task(bring(pool))
            while place.login.refused == before:
                await asyncio.sleep(0.01)
            await asyncio.wait([second], timeout=1)
            assert not second.done()
        await second
        await pool.close()

    try:
        asyncio.run(asyncio.wait_for(both(), PATIENCE))
    finally:
        place.login.mend()


class TestErrors:
    """One for each thing that may be wrong, and nothing is made, here or there."""

    @pytest.fixture(autouse=True)
    def nothing_is_made(self, ws: Workspace, place: Place) -> Iterator[None]:
        before = {path.name for path in place.there.iterdir()}
        yield
        assert "wrong" not in ws.compute_targets
        assert {path.name for path in place.there.iterdir()} == before

    def refused(self, ws: Workspace, place: Place, **settings: Any) -> ComputeTargetException:
        with pytest.raises(ComputeTargetException) as caught:
            ComputeTarget.create(ws, "wrong", place.configuration(**settings))
        return caught.value

    def test_not_reachable(self, ws, place):
        place.login.cut()
        try:
            error = self.refused(ws, place)
        finally:
            place.login.mend()
        assert error.headline == "host login cannot be reached"
        assert "Try 'ssh -F" in error.hint

    def test_unknown_host_key(self, ws, place):
        known = place.login.known_hosts.read_text()
        place.login.known_hosts.write_text("")
        try:
            error = self.refused(ws, place)
        finally:
            place.login.known_hosts.write_text(known)
        assert error.headline == "the key of host login is unknown"
        assert "Log in once by hand" in error.hint

    def test_a_folder_that_cannot_be_written(self, ws, place):
        error = self.refused(ws, place, shared_folder="/proc/trainmaster")
        assert error.headline == "shared_folder /proc/trainmaster cannot be written to at host login"
        assert "all nodes see" in error.hint

    def test_no_slurm(self, ws, place, tmp_path):
        """A host that can be logged in to, from where no jobs are submitted."""
        error = self.refused(ws, place, python=python_alone(tmp_path, SHELL="/bin/false"))
        assert error.headline == "host login has no sbatch"
        assert "login node" in error.hint

    def test_settings_that_mean_nothing(self, ws, place):
        assert "shared_folder must be" in self.refused(ws, place, shared_folder=None).headline
        assert "shared_folder must be" in self.refused(ws, place, shared_folder="here").headline
        assert "without login" in self.refused(ws, place, login=None, port=22, config_file="").headline
        assert "cannot be the name of a host" in self.refused(ws, place, login="-oProxyCommand=x").headline


def python_alone(folder: Path, **variables: str) -> str:
    """A Python there whose PATH leads to no Slurm."""
    program = folder / "python-alone"
    given = " ".join(f"{name}={value}" for name, value in {"PATH": "/nowhere", **variables}.items())
    program.write_text(f'#!/bin/sh\n{given} exec /usr/bin/python3 "$@"\n')
    program.chmod(0o755)
    return str(program)


def test_compute_create_asks_sinfo_there(ws, place, capfd):
    words = ["--login", "login", "--ssh-config", place.login.ssh_config, "--workspace", str(ws.path)]
    assert command(["compute", "create", "slurm", "asked", "--shared-folder", f"{place.there}/shared", *words]) == 0
    said = capfd.readouterr()
    assert "main (default): 2 nodes with 4 CPUs" in said.err
    assert "can use up to 2 nodes" in said.out
    target = ComputeTarget(ws, "asked")
    assert isinstance(target, SlurmCompute)
    assert target.type == "slurm"
    assert target.serialize()["options"]["login"] == "login"
    assert command(["compute", "create", "slurm", "asked", "--key", "/k", "--workspace", str(ws.path)]) != 0
    assert "--key applies only to hosts over SSH" in capfd.readouterr().err


def test_the_path_of_a_login_shell_counts(ws, place, tmp_path):
    """Where Slurm is only on the PATH of those who log in by hand, it is found all the same."""
    (tmp_path / ".profile").write_text("export PATH=/usr/bin:/bin\n")
    configuration = place.configuration(python=python_alone(tmp_path, HOME=str(tmp_path), SHELL="/bin/sh"))
    assert "main" in configuration.look(ws, "--noheader", "--format=%P")
