"""Runs without a job: a notebook logs to them; they end with the block, the call or the program."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.backends import opening_code
from tests.conftest import stop_dispatcher

from trainmaster import Experiment, Workspace
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")


@pytest.fixture
def experiment(shared):
    return Experiment(shared, "notebook")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A small current folder: it is what a snapshot is taken of."""
    place = tmp_path / "notebook"
    place.mkdir()
    (place / "notes.txt").write_text("x")
    monkeypatch.chdir(place)
    return place


def test_by_hand(experiment):
    run = experiment.start_logging()
    assert (run.status, run.type) == ("Running", "azureml.interactive")
    run.log("m", 1)
    run.tag("a", "b")
    assert run.get_metrics() == {"m": 1}
    run.complete()
    assert run.status == run.get_status() == "Completed"
    details = run.get_details()
    assert details["endTimeUtc"] >= details["startTimeUtc"]
    assert details["runDefinition"] == {}
    assert details["submittedBy"]
    assert run.wait_for_completion() == details
    run.fail("too late")
    assert run.get_status() == "Completed"


def test_block(experiment, capsys):
    with experiment.start_logging(display_name="nice", tags={"t": 1}) as run:
        print("kept")
        run.log("m", 1)
        assert run.get_status() == "Running"
    assert run.get_status() == "Completed"
    assert (run.name, run.tags) == ("nice", {"t": "1"})
    assert capsys.readouterr().out == "kept\n"
    assert run.get_file_names() == ["logs/user_log.txt"]
    run.download_file("logs/user_log.txt", "log.txt")
    assert Path("log.txt").read_text() == "kept\n"
    print("not kept")
    assert run.get_metrics() == {"m": 1}


def test_block_that_fails(experiment):
    before = sys.stdout
    with pytest.raises(ZeroDivisionError), experiment.start_logging() as run:
        1 / 0  # noqa: B018
    assert sys.stdout is before
    error = run.get_details()["error"]
    assert (error["code"], error["message"]) == ("ZeroDivisionError", "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("code", [0, None])
def test_exit_without_a_fault_is_swallowed(experiment, code):
    with experiment.start_logging(snapshot_directory=None) as run:
        sys.exit(code)
    assert run.get_status() == "Completed"


def test_exit_with_a_fault(experiment):
    with pytest.raises(SystemExit), experiment.start_logging(snapshot_directory=None) as run:
        sys.exit(2)
    assert run.get_status() == "Failed"


def test_failed_by_hand(experiment):
    run = experiment.start_logging(snapshot_directory=None)
    run.fail(error_details="because", error_code="Mine")
    assert run.get_details()["error"]["error"] == {"code": "Mine", "message": "because"}


def test_cancelled(experiment):
    with experiment.start_logging(snapshot_directory=None) as run:
        run.cancel()
        assert run.get_status() == "Canceled"
    assert run.get_status() == "Canceled"


def test_outputs_are_collected(experiment, folder):
    (folder / "results" / "deep").mkdir(parents=True)
    (folder / "results" / "deep" / "r.txt").write_text("r")
    run = experiment.start_logging(outputs="results", snapshot_directory=None)
    run.upload_file("direct.txt", "notes.txt")
    run.complete()
    assert run.get_file_names() == ["direct.txt", "outputs/deep/r.txt"]


def test_folders_of_v1_are_created_and_collected(experiment, folder, tmp_path, monkeypatch):
    run = experiment.start_logging()
    assert (folder / "outputs").is_dir() and (folder / "logs").is_dir()
    Path("outputs/model.pkl").write_text("model")
    Path("outputs/plots").mkdir()
    Path("outputs/plots/loss.png").write_text("picture")
    run.upload_file("outputs/model.pkl", "outputs/model.pkl")
    monkeypatch.chdir(tmp_path)
    run.complete()
    assert run.get_file_names() == ["outputs/model.pkl", "outputs/plots/loss.png"]
    (folder / "outputs" / "late.txt").write_text("late")
    run.complete()
    assert run.get_file_names() == ["outputs/model.pkl", "outputs/plots/loss.png"]


def test_outputs_of_a_block_that_fails_are_kept(experiment):
    with pytest.raises(ZeroDivisionError), experiment.start_logging(snapshot_directory=None) as run:
        Path("outputs/half.txt").write_text("half")
        1 / 0  # noqa: B018
    assert run.get_file_names() == ["logs/user_log.txt", "outputs/half.txt"]


def test_output_that_differs_from_the_uploaded_file(experiment):
    with (
        pytest.warns(UserWarning, match=r"outputs/a.txt is not among the files"),
        experiment.start_logging(snapshot_directory=None) as run,
    ):
        Path("outputs/a.txt").write_text("first")
        run.upload_file("outputs/a.txt", "outputs/a.txt")
        Path("outputs/a.txt").write_text("second")
        Path("outputs/b.txt").write_text("other")
    assert run.get_status() == "Completed"
    assert run.get_file_names() == ["logs/user_log.txt", "outputs/a.txt", "outputs/b.txt"]
    run.download_file("outputs/a.txt", "kept.txt")
    assert Path("kept.txt").read_text() == "first"


def test_an_upload_replaces_what_an_earlier_run_left_in_outputs(experiment, folder):
    """Notebooks log in a loop and upload the model by the same name; nothing is wrong with that."""
    for turn in ("first", "second"):
        with experiment.start_logging(snapshot_directory=None) as run:
            Path("model.pkl").write_text(turn)
            run.upload_file("outputs/model.pkl", "model.pkl")
            if turn == "first":
                Path("outputs/model.pkl").write_text(turn)
    run.download_file("outputs/model.pkl", "kept.pkl")
    assert Path("kept.pkl").read_text() == "second"


def test_folder_that_cannot_be_created(experiment, folder):
    (folder / "outputs").write_text("a file")
    with pytest.warns(UserWarning, match=r"cannot create the folder \./outputs"):
        run = experiment.start_logging(snapshot_directory=None)
    run.complete()
    assert run.get_file_names() == []


def test_outputs_of_a_child_are_collected(experiment, folder):
    (folder / "fold").mkdir()
    run = experiment.start_logging(snapshot_directory=None)
    with run.child_run("fold", outputs="fold") as child:
        (folder / "fold" / "score.txt").write_text("0.9")
    run.complete()
    assert child.get_file_names() == ["outputs/score.txt"]
    assert run.get_file_names() == []


def test_logs_written_within_the_block_are_kept(experiment, folder):
    (folder / "logs").mkdir()
    (folder / "logs" / "old.txt").write_text("old")
    with experiment.start_logging(snapshot_directory=None) as run:
        (folder / "logs" / "deep").mkdir()
        (folder / "logs" / "deep" / "new.txt").write_text("new")
    assert run.get_file_names() == ["logs/deep/new.txt", "logs/user_log.txt"]


def test_snapshot(experiment, tmp_path):
    run = experiment.start_logging()
    assert run.get_snapshot_id()
    assert Path(run.restore_snapshot(path=tmp_path)).name == f"{run.get_snapshot_id()}.zip"
    bare = experiment.start_logging(snapshot_directory=None)
    assert not bare.get_snapshot_id()
    with pytest.raises(UserErrorException, match="has no snapshot"):
        bare.restore_snapshot()
    assert bare.take_snapshot(tmp_path / "notebook" / "notes.txt") == run.get_snapshot_id()
    assert bare.take_snapshot(tmp_path / "notebook") == run.get_snapshot_id() == bare.get_snapshot_id()
    run.complete(), bare.complete()


def test_unknown_parameter(experiment):
    with pytest.raises(UserErrorException, match="colour"):
        experiment.start_logging(colour="red")


def test_waited_for_by_another_program(experiment, shared):
    run = experiment.start_logging(snapshot_directory=None)
    code = (
        f"import sys\nfrom trainmaster import Workspace\nrun = {opening_code(shared)}.get_run(sys.argv[1])\n"
        "print('waiting', flush=True)\nprint(run.wait_for_completion()['status'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, run.id], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "waiting\n"
        run.complete()
        assert other.communicate(timeout=120)[0] == "Completed\n"


PROGRAM = """
import sys
from trainmaster import Experiment, Workspace
run = Experiment(OPENED, 'program').start_logging(snapshot_directory=None)
run.log('m', 1)
run.child_run('child')
print(run.id, flush=True)
sys.stdin.read()
"""


def started(workspace):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("OPENED", opening_code(workspace))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return program, workspace.get_run(program.stdout.readline().strip())


def ended_program(program):
    program.stdin.close()
    program.stdout.close()
    program.wait(timeout=120)


@pytest.mark.local_only("the dispatcher watches a process of its machine; on a server there is a lease")
@pytest.mark.parametrize("how", ["killed", "ended"])
def test_program_that_does_not_complete_its_run(shared, how):
    program, run = started(shared)
    assert run.get_status() == "Running"
    if how == "killed":
        program.send_signal(signal.SIGKILL)
    ended_program(program)
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "OwnerLost"
    assert f"process {program.pid}" in details["error"]["message"]
    assert "run.complete()" in details["error"]["message"]
    assert run.get_metrics() == {"m": 1}
    assert [child.get_status() for child in run.get_children()] == ["Failed"]


@pytest.mark.local_only("the dispatcher watches a process of its machine; on a server there is a lease")
def test_program_that_dies_while_no_dispatcher_lives(workspace):
    program, run = started(workspace)
    folder = WorkspaceFolder(workspace.path)
    stop_dispatcher(folder)
    program.kill()
    ended_program(program)
    assert run.wait_for_completion(raise_on_error=False)["error"]["code"] == "OwnerLost"


@pytest.mark.local_only("it is about the names of machines")
def test_run_of_a_program_elsewhere_is_left_alone(shared, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "another-machine")
    run = Experiment(shared, "elsewhere").start_logging(snapshot_directory=None)
    monkeypatch.undo()
    code = "import sys; from trainmaster import Workspace; Workspace(path=sys.argv[1]).connection.call('status')"
    subprocess.run([sys.executable, "-c", code, str(shared.path)], check=True, timeout=120)
    stop_dispatcher(WorkspaceFolder(shared.path))
    assert run.get_status() == "Running"
    run.complete()


@pytest.mark.local_only("the dispatcher watches a process of its machine; on a server there is a lease")
def test_owner_survives_a_dispatcher_restart(workspace):
    program, run = started(workspace)
    stop_dispatcher(WorkspaceFolder(workspace.path))
    assert Workspace(path=workspace.path).get_run(run.id).get_status() == "Running"
    program.kill()
    ended_program(program)
    assert run.wait_for_completion(raise_on_error=False)["error"]["code"] == "OwnerLost"
