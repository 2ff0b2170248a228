"""The ways in which a rank can fail, with and without MPI: the run reports the cause, and the log is the script's."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from four_ranks import Submit, experiment_on_two_nodes, logs, submitter
from node_run import make_kit
from tests.conftest import ended, run_folder, stop_dispatcher, until

import trainmaster
from trainmaster import Experiment
from trainmaster.dispatcher.runs.outcome import outcome
from trainmaster.dispatcher.runs.rank_results import with_ranks
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated"),
]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experiment]:
    """One workspace for all: its environment is built once."""
    with experiment_on_two_nodes(tmp_path_factory.mktemp("ranks")) as made:
        yield made


@pytest.fixture
def submit(experiment: Experiment, tmp_path: Path) -> Submit:
    return submitter(experiment, tmp_path)


# Three ranks wait for the fourth, as they do in a collective operation, and fail when it is gone.
PEERS = """
import atexit, os, signal, socket, sys, time
rank = int(os.environ["RANK"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
print("rank", rank, "is here", flush=True)
if rank == 2:
    server = socket.create_server(address)
    peers = [server.accept()[0] for _ in range(3)]
    {how}
while True:
    try:
        peer = socket.create_connection(address)
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
try:
    peer.recv(1)
except ConnectionError:
    pass
raise ConnectionError("the peer is gone")
"""
RAISED = "ValueError: the real mistake"

WAYS = [
    pytest.param("raise ValueError('the real mistake')", 1, None, RAISED, id="exception"),
    pytest.param("sys.exit('the real mistake')", 1, None, "the real mistake", id="sys.exit"),
    pytest.param("os._exit(5)", 5, None, "rank 2 is here", id="os._exit"),
    pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", None, "SIGSEGV", "rank 2 is here", id="SIGSEGV"),
    pytest.param("os.kill(os.getpid(), signal.SIGKILL)", None, "SIGKILL", "rank 2 is here", id="SIGKILL"),
]


@pytest.mark.parametrize("kind", ["mpi", "gloo"])
@pytest.mark.parametrize(("how", "code", "name", "last"), WAYS)
def test_the_rank_that_failed_first_is_the_cause(
    submit: Submit, kind: str, how: str, code: int | None, name: str | None, last: str
) -> None:
    run = submit(PEERS.format(how=how), kind)
    details = ended(run)
    error = details["error"]
    assert details["status"] == "Failed"
    assert (error["rank"], error["node"]) == (2, 1), error
    assert error["tail"].splitlines()[-1] == last
    lines = error["message"].splitlines()
    if last == RAISED:
        assert lines.pop(0) == f"rank 2 on node 1: {RAISED}"
    # After its exception its peers lose their connections before it has ended. On a busy machine they may end first,
    # and it is asked to stop. The exception was before that.
    told = last == RAISED and lines[0] == "rank 2 on node 1 failed with an exception"
    way = f"was killed by {name}" if name else f"ended with exit code {code}"
    assert told or lines[0].startswith(f"rank 2 on node 1 {way}"), error
    assert told or (error["exit_code"], error["signal"]) == (code, name), error
    assert lines[1:3] == ["The last lines it wrote:", "rank 2 is here"]
    assert processes_of(run.id) == []
    _only_the_scripts_words(run)
    table = {row["rank"]: row for row in json.loads((run_folder(run).logs / "process_info.json").read_text())}
    assert [table[rank]["node"] for rank in range(4)] == [0, 0, 1, 1]
    assert told or (table[2]["exit_code"], table[2]["signal"]) == (code, name and getattr(signal, name))
    assert all({"host", "pid", "started_at", "ended_at"} <= set(row) for row in table.values())


def test_who_lets_its_peers_down_before_it_ends_is_the_cause_still(submit: Submit) -> None:
    run = submit(PEERS.format(how="[each.close() for each in peers]; time.sleep(0.2); sys.exit('too late')"), "gloo")
    error = ended(run)["error"]
    assert (error["rank"], error["exit_code"], error["tail"].splitlines()[-1]) == (2, 1, "too late"), error


def _only_the_scripts_words(run: Run) -> None:
    for name, text in logs(run).items():
        first, *rest = text.splitlines()
        assert first.endswith("is here"), (name, text)
        # Nothing else, or a traceback or a message of the script itself, whose writing may have been cut short.
        ends = ("", RAISED, "the real mistake", "ConnectionError: the peer is gone")
        of_traceback = ("Traceback (most recent call last):", "  File ", "    ")
        assert all(line in ends or line.startswith(of_traceback) for line in rest), (name, text)
        for word in ("mpirun", "prterun", "Open MPI", "PMIX", "UCX", "***"):
            assert word not in text, (name, text)


@pytest.mark.parametrize("kind", ["mpi", "gloo"])
def test_one_that_takes_its_time_to_close_down_after_its_exception(submit: Submit, kind: str) -> None:
    """By its closing connections the others fail, and end before it does."""
    how = """
    def close():
        for peer in peers:
            peer.close()
        time.sleep(600)
    atexit.register(close)
    raise ValueError("the real mistake")
"""
    error = ended(submit(PEERS.format(how=how.strip()), kind))["error"]
    assert (error["code"], error["rank"], error["node"]) == ("ScriptFailed", 2, 1), error
    lines = error["message"].splitlines()
    assert lines[:2] == [f"rank 2 on node 1: {RAISED}", "rank 2 on node 1 failed with an exception"]
    assert RAISED in lines


MPI_PEERS = """
import ctypes, os, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
print("rank", comm.rank, "is here", flush=True)
comm.barrier()
if comm.rank == 2:
    {how}
comm.recv(source=2)
"""


@pytest.mark.parametrize(
    ("how", "first", "last"),
    [
        # mpi4py would wait in MPI_Finalize for ever.
        pytest.param("raise ValueError('the real mistake')", f": {RAISED}", RAISED, id="exception"),
        pytest.param("sys.exit('the real mistake')", " ended with exit code 1: the real mistake", "the real mistake",
                     id="sys.exit"),
        pytest.param("comm.Abort(5)", " ended with exit code 5", "rank 2 is here", id="abort"),
        pytest.param("ctypes.string_at(0)", " was killed by SIGSEGV", "rank 2 is here", id="crash"),
    ],
)  # fmt: skip
def test_with_real_mpi(submit: Submit, how: str, first: str, last: str) -> None:
    run = submit(MPI_PEERS.format(how=how), "mpi")
    error = ended(run)["error"]
    assert error["message"].startswith(f"rank 2 on node 1{first}\n"), error
    assert error["tail"].splitlines()[-1] == last
    _only_the_scripts_words(run)


def test_a_rank_that_leaves_mpi_early(submit: Submit) -> None:
    run = submit(MPI_PEERS.format(how="os._exit(0)"), "mpi")
    error = ended(run)["error"]
    assert error["code"] == "LauncherFailed"
    headline = error["message"].splitlines()[0]
    assert headline.startswith("rank 2 ended with 0 at ") and "while ranks 0, 1, 3 went on" in headline
    _only_the_scripts_words(run)


def test_a_rank_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    """As without MPI, and not in mpirun's words."""
    kit = make_kit(tmp_path / "kit")
    node = tmp_path / "nodes" / "0"
    node.mkdir(parents=True)
    rank = {"rank": 0, "argv": ["/no/such/python"], "env": {"TRAINMASTER_NODE": "0"}, "cwd": "/", "log": "/dev/null"}
    (node / "ranks.json").write_text(json.dumps({"version": 1, "ranks": [rank]}))
    command = [
        sys.executable,
        "-I",
        "-S",
        str(kit / "trainmaster" / "job" / "agent" / "rank.py"),
        str(node / "ranks.json"),
    ]
    done = subprocess.run(command, env={"OMPI_COMM_WORLD_RANK": "0"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    mpirun = {"reason": "exited", "processes": [], "first_failure": {"rank": 0, "exit_code": 1}}
    end = outcome([with_ranks(mpirun, node)], cancel_requested=False, time_limit=None)
    assert end.error is not None
    assert (end.error.code, end.error.message.splitlines()[0]) == ("StartError", "/no/such/python: no such file")


# --- out of memory ---


@pytest.fixture
def limited() -> Iterator[str]:
    """The cgroup.procs of a cgroup that has little memory; of version 1 or 2, as the machine has it."""
    group = _limited_group()
    if group is None:
        pytest.skip("no cgroup with a memory limit can be made here: needs root, or a delegated memory controller")
    yield str(group / "cgroup.procs")
    until(lambda: _is_removed(group), what="the end of all in the cgroup")


def _is_removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def _limited_group() -> Path | None:
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    name = f"trainmaster_test_{uuid.uuid4().hex[:8]}"
    places = [
        (Path("/sys/fs/cgroup/memory" + own.get("memory", "/")), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup" + own.get("", "/")), "memory.max"),
    ]
    for parent, limit in places:
        with contextlib.suppress(OSError):
            group = parent / name
            group.mkdir()
            try:
                (group / limit).write_text(str(64 << 20))
                return group
            except OSError:
                group.rmdir()
    return None


HUNGRY = """
import os, sys, time
if os.environ["RANK"] == "1":
    print("loading", flush=True)
    with open(sys.argv[1], "w") as group:
        group.write(str(os.getpid()))
    data = bytearray(512 << 20)
    print("loaded", len(data))
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["mpi", "gloo"])
def test_killed_for_memory(submit: Submit, kind: str, limited: str) -> None:
    error = ended(submit(HUNGRY, kind, script_params={limited: ""}))["error"]
    assert (error["code"], error["rank"], error["signal"]) == ("OutOfMemory", 1, "SIGKILL"), error
    assert error["message"].startswith("rank 1 on node 0 was killed by the kernel because the memory was used up")
    assert error["tail"] == "loading"


# --- as an unprivileged user ---

AS_USER = """
import os, sys
from trainmaster import ComputeTarget, Estimator, Experiment, LocalCompute, Mpi, Workspace
folder = sys.argv[1]
ws = Workspace.create("own", path=folder + "/ws", show_output=False)
ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=2))
run = Experiment(ws, "mine").submit(Estimator(
    folder + "/source", entry_script="train.py", compute_target="box", node_count=2, distributed_training=Mpi(2)))
details = run.wait_for_completion(raise_on_error=False)
print(details["status"], details.get("error"))
for rank in range(4):
    print(open("%s/ws/runs/%s/files/azureml-logs/70_driver_log_%d.txt" % (folder, run.id, rank)).read(), end="")
"""


@pytest.fixture
def stranger() -> Iterator[tuple[Path, Callable[..., subprocess.CompletedProcess[str]]]]:
    """A folder of an unprivileged user, and a way to run Python programs as that user."""
    if os.getuid() != 0:
        pytest.skip("this user is unprivileged: all other tests are this one")
    folder = Path(tempfile.mkdtemp(prefix="trainmaster-user-"))
    nobody = pwd.getpwnam("nobody")
    # This user may not see the packages of root where they lie.
    source = Path(trainmaster.__file__).parent.parent
    packages = Path(sqlalchemy.__file__).parent.parent
    variables = {
        "HOME": str(folder),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": f"{source}:{packages}",
        "TRAINMASTER_HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
    }

    def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, *arguments], cwd=folder, env=variables, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    yield folder, run
    stop_dispatcher(WorkspaceFolder(folder / "ws"))
    shutil.rmtree(folder)


def _python_for(run: Callable[..., subprocess.CompletedProcess[str]]) -> str:
    """A Python of our version that the user may run, and that can import what we need."""
    name = f"python3.{sys.version_info.minor}"
    candidates = [sys.executable, *(f"{folder}/{name}" for folder in ("/usr/local/bin", "/usr/bin"))]
    for python in candidates:
        with contextlib.suppress(OSError):
            if run(python, "-c", "import sqlalchemy, trainmaster, blake3, uv").returncode == 0:
                return python
    pytest.skip(f"no {name} on this machine may be run by the user 'nobody'")


def test_mpi_as_an_unprivileged_user(stranger: Any) -> None:
    folder, run = stranger
    python = _python_for(run)
    (folder / "source").mkdir()
    (folder / "source" / "train.py").write_text(
        "import os\nprint(os.getuid() != 0, os.environ['OMPI_COMM_WORLD_RANK'], os.environ['OMPI_COMM_WORLD_SIZE'])\n"
    )
    done = run(python, "-c", AS_USER, str(folder))
    lines = [f"True {rank} 4" for rank in range(4)]
    assert done.stdout.splitlines() == ["Completed None", *lines], done.stdout + done.stderr
