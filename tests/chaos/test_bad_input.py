"""Garbage: one clear error, nothing else touched."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ended, stop_dispatcher
from trainmaster import ComputeTarget, Datastore, Estimator, Experiment, LocalCompute, Workspace
from trainmaster.job.errors import TrainmasterError, UserErrorException, WorkspaceException
from trainmaster.sdk.run.run import Run
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import dump_spec

BAD_NAMES = ["../escape", "with\nnewline", "", "x" * 10_000, "a/b", "nul\0byte", ".hidden", "-dash", "späce ü"]


def tree(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*")}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_cannot_be(workspace: Workspace, tmp_path: Path, name: str) -> None:
    before = tree(tmp_path)
    with pytest.raises(UserErrorException):
        Experiment(workspace, name)
    with pytest.raises(TrainmasterError):
        Workspace.create(name)
    with pytest.raises(TrainmasterError):
        ComputeTarget.create(workspace, name, LocalCompute.configuration())
    with pytest.raises(TrainmasterError):
        Datastore.register(workspace, name, str(tmp_path / "data"))
    with pytest.raises(TrainmasterError):
        Run.get(workspace, name)
    with pytest.raises(TrainmasterError):
        workspace.connection.call(
            "runs.create", runs=[{"id": name, "experiment": "x", "status": "Running", "created_at": 0.0}]
        )
    after = {each for each in tree(tmp_path) if not each.startswith("workspace/trainmaster.db")}
    assert after - before == set()


def test_a_source_with_a_loop_of_links(workspace: Workspace, project: Callable[..., Path]) -> None:
    source = project(train="import os\nprint(os.readlink('loop'))\n")
    (source / "loop").symlink_to(".")
    (source / "a").symlink_to("b")
    (source / "b").symlink_to("a")
    (source / "out").symlink_to("/etc")
    run = Experiment(workspace, "links").submit(
        Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True)
    )
    assert ended(run)["status"] == "Completed"


UNREADABLE = """
import os, sys
from pathlib import Path
from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots import take_snapshot
workspace, source = Path(sys.argv[1]), Path(sys.argv[2])
take_snapshot(source, workspace)
(source / "secret.bin").write_text("x")
(source / "secret.bin").chmod(0)
if os.getuid() == 0:
    # Root reads everything: become somebody who may not.
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    take_snapshot(source, workspace)
except SnapshotException as error:
    print(error.message)
    raise SystemExit(7)
"""


def test_an_unreadable_file_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "source").mkdir()
        (base / "source" / "train.py").write_text("print()")
        # Like umask 0: whoever the program becomes may write here.
        command = ["sh", "-c", 'umask 0; chmod -R a+rwX "$1"; exec "$2" -c "$3" "$1/workspace" "$1/source"', "sh"]
        done = subprocess.run([*command, folder, sys.executable, UNREADABLE], capture_output=True, text=True)
        assert done.returncode == 7, done.stderr
        assert "secret.bin" in done.stdout


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: "{",
        lambda text: "[]",
        lambda text: json.dumps({**json.loads(text), "version": 99}),
        lambda text: json.dumps({**json.loads(text), "surprise": 1}),
        lambda text: json.dumps({**json.loads(text), "node_count": "two"}),
        lambda text: "\0" * 100,
    ],
)
def test_a_spec_edited_by_hand(workspace: Workspace, edit: Callable[[str], str]) -> None:
    spec = json.dumps({"version": 1, "source_directory": "/x", "target": "local", "script": "train.py"})
    record = {"id": "edited", "experiment": "x", "status": "NotStarted", "created_at": 0.0, "target": "local"}
    with pytest.raises(UserErrorException):
        workspace.connection.call("runs.submit", run={**record, "spec": edit(spec)})
    assert workspace.connection.call("status")["active"] == []


@pytest.mark.parametrize("garbage", [b"", b"not a database" * 1000, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_corrupted_database(workspace: Workspace, garbage: bytes) -> None:
    folder = WorkspaceFolder(workspace.path)
    stop_dispatcher(folder)
    workspace.connection.close()
    for file in (*folder.path.glob("trainmaster.db-*"),):
        file.unlink()
    (folder.runs / "some-run").mkdir(parents=True)
    folder.database.write_bytes(garbage)
    before = tree(folder.path)
    with pytest.raises(WorkspaceException, match=r"trainmaster\.db"):
        Workspace(path=folder.path).connection.call("status")
    assert folder.database.read_bytes() == garbage
    assert tree(folder.path) - before <= {"dispatcher.log"}
    folder.database.unlink()


def test_a_broken_snapshot_fails_the_run_clearly(workspace: Workspace, project: Callable[..., Path]) -> None:
    source = project(train="print(1)")
    os.utime(source / "train.py", (0, 0))
    experiment = Experiment(workspace, "broken")
    estimator = Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True)
    assert ended(experiment.submit(estimator))["status"] == "Completed"
    snapshot = next((workspace.path / "snapshots").glob("*.json"))
    for entry in json.loads(snapshot.read_text())["files"]:
        (workspace.path / "blobs" / entry["digest"][:2] / entry["digest"]).unlink()
    run = _submit_as_is(experiment, estimator, snapshot.stem)
    details = ended(run)
    assert details["status"] == "Failed"
    assert "train.py" in details["error"]["message"]
    assert not (workspace.path / "runs" / run.id / "code").exists()


def _submit_as_is(experiment: Experiment, estimator: Estimator, snapshot_id: str) -> Run:
    """Submits a job on a snapshot taken earlier, as a client would that lost a race with a broken disk."""
    record = {"id": "broken_1", "experiment": experiment.name, "status": "NotStarted", "created_at": 0.0}
    spec = dump_spec(replace(estimator.compile({}), snapshot_id=snapshot_id))
    experiment.workspace.connection.call("runs.submit", run={**record, "target": "local", "spec": spec})
    return experiment.workspace.get_run("broken_1")


def test_garbage_on_the_socket(workspace: Workspace, submit: Callable[..., Run]) -> None:
    path = str(WorkspaceFolder(workspace.path).socket)
    workspace.connection.call("status")
    for message in (
        b"\n",
        b"{}\n",
        b"[]\n",
        b"\xff\xfe\n",
        b'{"op": "runs.get", "args": {"bad": 1}}\n',
        b"x" * 100_000,
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(message)
            if message.endswith(b"\n"):
                assert b"error" in connection.recv(65536)
    assert ended(submit("print(1)"))["status"] == "Completed"


GARBAGE = [
    b"\xff\xfe",
    b"[1]",
    b'{"k": 5}',
    b'{"k": "metric"}',
    b'{"k": "metric", "n": {}, "v": []}',
    b'{"k": "state", "v": "Completed", "r": "other"}',
    b'{"k": "tags", "v": 7}',
    b'{"k": "metric", "n": "ok", "v": 2, "t": 1}',
    b'{"torn',
]


def test_a_journal_full_of_garbage(submit: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(b"\n".join(GARBAGE))
    run = submit(
        "import os, shutil, sys\n"
        "from trainmaster import Run\n"
        "run = Run.get_context()\n"
        "run.log('before', 1)\n"
        "shutil.copy(sys.argv[1], os.path.join(os.environ['TRAINMASTER_RUN_FOLDER'], 'journals', 'zz.jsonl'))\n"
        "run.log('after', 3)\n",
        script_params={str(tmp_path / "garbage"): ""},
    )
    assert ended(run)["status"] == "Completed"
    assert run.get_metrics() == {"before": 1, "after": 3, "ok": 2}


def test_wrong_types_on_the_socket_do_not_fill_the_log(workspace: Workspace) -> None:
    folder = WorkspaceFolder(workspace.path)
    workspace.connection.call("status")
    before = folder.log.read_text()
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as answers:
        connection.connect(str(folder.socket))
        for number, request in enumerate(
            [
                *({"op": "runs.get", "args": {"run_id": wrong}} for wrong in (1, None, [], {}, 1.5, True)),
                *({"op": "runs.delete", "args": {"run_ids": wrong}} for wrong in (1, None, "text", {}, [[]])),
                *({"op": wrong, "args": {}} for wrong in (1, None, [], {}, "nothing", "_run")),
                *({"op": "runs.watch", "args": wrong} for wrong in (1, None, [], {}, {"run_id": 5})),
                {"op": "secrets.put", "args": {"secrets": {"a": "hush"}}},
                {"op": "runs.series", "args": {"run_id": "a", "max_points": 2**80}},
                {"op": "status", "args": {"surprise": 1}},
                {"op": "experiments.list", "args": {"view": []}},
            ]
        ):
            connection.sendall(json.dumps({"id": number, **request}).encode() + b"\n")
            answer = json.loads(answers.readline())
            assert answer["id"] == number and answer["error"]["type"] == "UserErrorException", (request, answer)
            assert "the dispatcher failed" not in answer["error"]["headline"]
    assert folder.log.read_text() == before


def test_memory_is_bounded_over_all_connections(workspace: Workspace) -> None:
    """Clients that begin long requests and do not end them; others are answered meanwhile."""
    folder = WorkspaceFolder(workspace.path)
    pid = workspace.connection.call("status")["pid"]
    begun = memory(pid)
    connections = []
    try:
        for _ in range(40):
            connection = socket.socket(socket.AF_UNIX)
            connections.append(connection)
            connection.connect(str(folder.socket))
            connection.setblocking(False)
        # Each sends what the dispatcher takes: together they would like to have 800 MB in its memory.
        piece, sent = b"x" * (1 << 20), [0] * len(connections)
        quiet = 0
        while quiet < 20:
            ready = select.select([], connections, [], 0.05)[1]
            quiet = 0 if ready else quiet + 1
            for number, connection in enumerate(connections):
                if connection in ready and sent[number] < 20 * len(piece):
                    sent[number] += connection.send(piece)
            quiet = 20 if sum(sent) >= 800 * len(piece) else quiet
        assert workspace.connection.call("status")["pid"] == pid
        assert memory(pid) - begun < 400 << 20
        assert sum(sent) < 400 << 20
    finally:
        for connection in connections:
            connection.close()
    assert workspace.connection.call("status")["pid"] == pid


def memory(pid: int) -> int:
    """What a process has in memory, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_request_beyond_all_measure(workspace: Workspace) -> None:
    with pytest.raises(UserErrorException, match=r"the request has \d+ MB"):
        workspace.connection.call("runs.get", run_id="x" * (65 << 20))
    folder = WorkspaceFolder(workspace.path)
    pid = workspace.connection.call("status")["pid"]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder.socket))
        piece = b"x" * (1 << 20)
        with pytest.raises(ConnectionError):
            for _ in range(200):
                connection.sendall(piece)
    assert workspace.connection.call("status")["pid"] == pid
    # As long as one may be.
    with pytest.raises(TrainmasterError, match="no run"):
        workspace.connection.call("runs.get", run_id="x" * (60 << 20))
