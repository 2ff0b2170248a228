"""Runs that are tried again after a failure, and v1's way to go on from the checkpoints of another run."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends import BOTH, folder_of, new_name
from tests.conftest import dispatcher_handle, end_workspace, ended, until, wait_awake, wait_gone

from trainmaster import (
    ComputeTarget,
    DataPath,
    Estimator,
    Experiment,
    Gloo,
    LocalCompute,
    Mpi,
    PyTorch,
    ScriptRunConfig,
    Workspace,
)
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run
from trainmaster.shared.attempts import current_attempt
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.json_files import read_json

pytestmark = pytest.mark.timeout(600)
BACKENDS = BOTH

# Proves outside of the run that it began, then goes on from its checkpoint.
BEGIN = """
import os, signal, sys, time
from azureml.core import Run
attempt = int(os.environ["TRAINMASTER_ATTEMPT"])
if os.environ.get("RANK", "0") == "0":
    with open(sys.argv[1], "a") as proof:
        proof.write("%d\\n" % attempt)
    step = int(open("outputs/checkpoint").read()) if os.path.exists("outputs/checkpoint") else 0
    print("attempt", attempt, "goes on from step", step, flush=True)
    Run.get_context().log("step", step + 1)
    with open("outputs/checkpoint", "w") as file:
        file.write(str(step + 1))
"""


class Retried:
    """A workspace, and scripts that prove which attempts they had."""

    def __init__(self, workspace: Workspace, base: Path) -> None:
        self.workspace = workspace
        self.folder = WorkspaceFolder(folder_of(workspace))
        # The Python of a laptop cannot be used on a server.
        self.user_managed = "path" in workspace.backend.as_config()
        self._base = base
        self._count = 0

    def submit(self, script: str, kind: Any = Estimator, **settings: Any) -> Run:
        self._count += 1
        source = self._base / f"source{self._count}"
        source.mkdir()
        (source / "train.py").write_text(BEGIN + script)
        proof = self._base / f"proof{self._count}"
        defaults = {"compute_target": "local", "user_managed": self.user_managed, "max_retries": 2}
        estimator = kind(
            str(source), entry_script="train.py", script_params={str(proof): ""}, **{**defaults, **settings}
        )
        return Experiment(self.workspace, "retried").submit(estimator, tags={"proof": str(proof)})

    def kill_dispatcher(self) -> None:
        """SIGKILL; returns when it is gone. The next question to the workspace starts another."""
        handle = dispatcher_handle(self.folder)
        if handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            wait_gone(handle)


def made_with_pause(seconds: float, base: Path) -> Workspace:
    """A workspace whose dispatchers wait this long before the second attempt."""
    os.environ["TRAINMASTER_RETRY_SECONDS"] = str(seconds)
    return Workspace.create("retried", path=base / "workspace", show_output=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Retried]:
    if backend is not None:
        workspace = Workspace.create(new_name("retried"), show_output=False, server=backend.url)
        yield Retried(workspace, tmp_path_factory.mktemp("retried"))
        end_workspace(folder_of(workspace))
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_RETRY_SECONDS", "0.1")
        base = tmp_path_factory.mktemp("retried")
        workspace = made_with_pause(0.1, base)
        ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=2))
        yield Retried(workspace, base)
        end_workspace(workspace.path)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Retried]:
    """There is all the time in the world between two attempts."""
    monkeypatch.setenv("TRAINMASTER_RETRY_SECONDS", "60")
    workspace = made_with_pause(60, tmp_path)
    yield Retried(workspace, tmp_path)
    end_workspace(workspace.path)


def begun(run: Run) -> list[int]:
    """The attempts whose script began, as the script itself noted them."""
    return [int(line) for line in Path(run.tags["proof"]).read_text().split()]


def attempts(details: dict[str, Any]) -> list[tuple[int, str, str | None]]:
    return [(each["number"], each["status"], each.get("error", {}).get("code")) for each in details["attempts"]]


def run_folder(run: Run) -> RunFolder:
    """The run's folder, also behind a server."""
    return WorkspaceFolder(folder_of(run.experiment.workspace)).run(run.id)


def text_of(run: Run, name: str) -> str:
    """A file of the run, as its user gets it."""
    with tempfile.TemporaryDirectory() as place:
        run.download_file(name, f"{place}/file")
        return Path(place, "file").read_text()


def test_it_goes_on_from_its_checkpoint(shared: Retried) -> None:
    run = shared.submit("sys.exit(7 if attempt < 3 else 0)")
    details = ended(run)
    assert details["status"] == "Completed"
    assert begun(run) == [1, 2, 3]
    assert attempts(details) == [(1, "Failed", "ScriptFailed"), (2, "Failed", "ScriptFailed"), (3, "Completed", None)]
    assert details["attempts"][0]["error"]["exit_code"] == 7
    assert details["runDefinition"]["maxRetries"] == 2
    assert "error" not in details
    assert run.get_metrics() == {"step": [1, 2, 3]}
    logs = ["azureml-logs/70_driver_log.txt"]
    logs += [f"azureml-logs/attempt_{number}/70_driver_log.txt" for number in (1, 2)]
    # Of the environment, which only the run on a server has.
    build = [] if shared.user_managed else ["azureml-logs/20_image_build_log.txt"]
    assert run.get_file_names() == [*build, *logs, "outputs/checkpoint"]
    assert sorted(details["logFiles"]) == [*build, *logs]
    assert text_of(run, "outputs/checkpoint") == "3"
    assert text_of(run, logs[0]) == "attempt 3 goes on from step 2\n"
    failure = "attempt 1 of 3 failed: rank 0 on node 0 ended with exit code 7; starting attempt 2"
    assert text_of(run, logs[1]) == f"attempt 1 goes on from step 0\n{failure}\n"
    assert processes_of(run.id) == []


def test_who_follows_sees_every_attempt(shared: Retried, capsys: pytest.CaptureFixture[str]) -> None:
    run = shared.submit("sys.exit(7 if attempt < 3 else 0)")
    run.wait_for_completion(show_output=True)
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if line.startswith("attempt ")]
    assert lines == [
        "attempt 1 goes on from step 0",
        "attempt 1 of 3 failed: rank 0 on node 0 ended with exit code 7; starting attempt 2",
        "attempt 2 goes on from step 1",
        "attempt 2 of 3 failed: rank 0 on node 0 ended with exit code 7; starting attempt 3",
        "attempt 3 goes on from step 2",
    ]


def test_the_last_error_says_how_many_attempts_there_were(shared: Retried) -> None:
    run = shared.submit("os.kill(os.getpid(), signal.SIGSEGV)", max_retries=1)
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["message"].startswith("2 attempts failed; the last one: rank 0 on node 0 was killed by")
    assert (details["error"]["signal"], details["error"]["attempts"]) == ("SIGSEGV", 2)
    assert attempts(details) == [(1, "Failed", "ScriptKilled"), (2, "Failed", "ScriptKilled")]
    assert begun(run) == [1, 2]
    assert text_of(run, "outputs/checkpoint") == "2"


def test_without_retries_there_is_one_attempt(shared: Retried) -> None:
    run = shared.submit("sys.exit(1)", max_retries=0)
    details = ended(run)
    assert (details["status"], begun(run)) == ("Failed", [1])
    assert details["error"]["message"].startswith("rank 0 on node 0 ended with exit code 1")
    assert "attempts" not in details


@pytest.mark.local_only("it puts a folder into the workspace")
def test_what_never_started_and_what_took_too_long_is_not_tried_again(shared: Retried, tmp_path: Path) -> None:
    late = shared.submit("time.sleep(600)", max_run_duration_seconds=1)
    source = tmp_path / "broken"
    source.mkdir()
    (source / "train.py").write_text("")
    (shared.workspace.path / "datastore" / "data").mkdir()
    in_the_way = shared.workspace.get_default_datastore().path("data").as_mount()
    in_the_way.path_on_compute = "train.py"
    broken = ScriptRunConfig(str(source), "train.py", [in_the_way], max_retries=2)
    broken.run_config.environment.python.user_managed_dependencies = True
    refused = ended(Experiment(shared.workspace, "retried").submit(broken))
    assert (refused["status"], refused["error"]["code"]) == ("Failed", "StartError")
    assert attempts(refused) == [(1, "Failed", "StartError")]
    details = ended(late)
    assert (details["status"], details["error"]["code"]) == ("Canceled", "MaxRunDurationExceeded")
    assert begun(late) == [1]


@pytest.mark.local_only("the limit is the agent's, which knows of no server")
def test_the_attempts_share_the_time_limit(shared: Retried) -> None:
    run = shared.submit("time.sleep(2 if attempt == 1 else 600)\nsys.exit(1)", max_run_duration_seconds=12)
    details = ended(run)
    assert (details["status"], details["error"]["code"]) == ("Canceled", "MaxRunDurationExceeded")
    assert details["error"]["message"].endswith("It was attempt 2.")
    plan = read_json(current_attempt(run_folder(run)).node(0) / "plan.json")
    assert plan is not None
    assert plan["time_limit_seconds"] <= 10


def test_a_lost_agent_is_replaced(shared: Retried) -> None:
    run = shared.submit("if attempt == 1: time.sleep(600)")
    checkpoint = run_folder(run).files / "outputs" / "checkpoint"
    # Written, and not only begun to be: the next attempt reads it.
    until(lambda: checkpoint.exists() and checkpoint.read_text() == "1", what="the first attempt")
    claim = until(lambda: read_json(run_folder(run).node(0) / "agent.json"))
    os.kill(claim["pid"], signal.SIGKILL)
    details = ended(run)
    assert (details["status"], begun(run)) == ("Completed", [1, 2])
    assert attempts(details) == [(1, "Failed", "NodeAgentLost"), (2, "Completed", None)]


@pytest.mark.local_only("it watches the processes of the run")
def test_a_hang_is_tried_again(shared: Retried) -> None:
    run = shared.submit("if attempt == 1: time.sleep(600)", hang_seconds=2)
    wait_awake(run, (run_folder(run).files / "outputs" / "checkpoint").exists, "the first attempt")
    until(run_folder(run).attempt_logs.exists, what="the next attempt")
    wait_awake(run, lambda: run.get_status() == "Completed", "its end")
    details = ended(run)
    assert (details["status"], begun(run)) == ("Completed", [1, 2])
    assert attempts(details) == [(1, "Failed", "HangDetected"), (2, "Completed", None)]


def test_children_of_a_failed_attempt_have_failed(shared: Retried) -> None:
    run = shared.submit("child = Run.get_context().child_run('part')\nsys.exit(1 if attempt == 1 else 0)")
    assert ended(run)["status"] == "Completed"
    assert sorted(child.get_status() for child in run.get_children()) == ["Completed", "Failed"]


RANKS = """
proof = os.open(sys.argv[1] + "-" + os.environ["RANK"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(proof, b"%d\\n" % attempt)
assert os.environ.get("TORCHELASTIC_RESTART_COUNT", str(attempt - 1)) == str(attempt - 1)
if attempt == 1:
    if os.environ["RANK"] == "1":
        # The other one would be ended for this before it had begun.
        other = sys.argv[1] + "-0"
        while not os.path.exists(other) or not os.path.getsize(other):
            time.sleep(0.01)
        print("the real mistake", flush=True)
        sys.exit(9)
    time.sleep(600)
"""


@pytest.mark.local_only("what ranks do is the same behind a server")
@pytest.mark.parametrize("distribution", [Mpi(), Gloo()], ids=["mpi", "gloo"])
def test_all_ranks_of_two_nodes_begin_again(shared: Retried, distribution: Any) -> None:
    own = {} if isinstance(distribution, Mpi) else {"user_managed": True}
    run = shared.submit(
        RANKS,
        kind=Estimator if isinstance(distribution, Mpi) else PyTorch,
        compute_target="box",
        node_count=2,
        distributed_training=distribution,
        **{"user_managed": False, **own},
    )
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert [Path(f"{run.tags['proof']}-{rank}").read_text().split() for rank in (0, 1)] == [["1", "2"]] * 2
    first = details["attempts"][0]["error"]
    assert (first["rank"], first["node"], first["exit_code"]) == (1, 1, 9)
    assert "the real mistake" in first["tail"]
    kept = run_folder(run).logs / "attempt_1"
    for rank in (0, 1):
        assert (kept / f"70_driver_log_{rank}.txt").read_text().splitlines()[-1].startswith("attempt 1 of 3 failed")
    assert sorted(row["rank"] for row in json.loads((kept / "process_info.json").read_text())) == [0, 1]
    assert processes_of(run.id) == []


def test_between_two_attempts_it_starts_and_says_so(slow: Retried) -> None:
    run = slow.submit("sys.exit(3)")
    failed = "attempt 1 of 3 failed: rank 0 on node 0 ended with exit code 3; attempt 2"
    until(lambda: run.get_details().get("waitingFor", "").startswith(failed), what="the failure")
    details = run.get_details()
    assert attempts(details) == [(1, "Failed", "ScriptFailed"), (2, "Starting", None)]
    assert run.get_status() == "Starting"
    run.cancel()
    details = ended(run)
    assert (details["status"], begun(run)) == ("Canceled", [1])
    assert run.get_metrics() == {"step": 1}
    assert not (run_folder(run).files / "outputs").is_symlink()
    assert text_of(run, "outputs/checkpoint") == "1"


def test_cancelled_between_two_attempts_while_there_was_no_dispatcher(slow: Retried) -> None:
    run = slow.submit("sys.exit(3)")
    until(lambda: run_folder(run).attempt_logs.exists(), what="the failure")
    run.cancel()
    slow.kill_dispatcher()
    assert ended(run)["status"] == "Canceled"
    assert begun(run) == [1]
    assert text_of(run, "outputs/checkpoint") == "1"


def moments(folder: RunFolder) -> dict[str, Callable[[], bool]]:
    second = RunFolder(folder.path, attempt=2)
    return {
        "the script runs": (folder.node(0) / "running.json").exists,
        "its agent said how it ended": (folder.node(0) / "result.json").exists,
        "the failure is kept": folder.failure.exists,
        "the logs are set apart": (folder.attempt_logs / "70_driver_log.txt").exists,
        "the next plan is there": (second.node(0) / "plan.json").exists,
        "the next plan is claimed": (second.node(0) / "agent.json").exists,
        "the next script runs": (second.node(0) / "running.json").exists,
    }


@pytest.mark.local_only("it watches the run's folder")
@pytest.mark.parametrize("moment", list(moments(RunFolder(Path()))))
def test_the_dispatcher_is_killed_when(shared: Retried, moment: str) -> None:
    run = shared.submit("sys.exit(7 if attempt < 3 else 0)")
    reached = moments(run_folder(run))[moment]
    deadline = time.monotonic() + 60
    while not reached():
        # Without a pause: some of these moments last a millisecond.
        assert time.monotonic() < deadline, moment
    shared.kill_dispatcher()
    check_once(run)


def check_once(run: Run) -> None:
    """Three attempts, each once, whatever was killed."""
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert begun(run) == [1, 2, 3]
    assert attempts(details) == [(1, "Failed", "ScriptFailed"), (2, "Failed", "ScriptFailed"), (3, "Completed", None)]
    assert run.get_metrics() == {"step": [1, 2, 3]}
    for number in (1, 2):
        lines = text_of(run, f"azureml-logs/attempt_{number}/70_driver_log.txt").splitlines()
        assert len(lines) == 2, lines
        assert lines[0] == f"attempt {number} goes on from step {number - 1}"
        assert lines[1].startswith(f"attempt {number} of 3 failed")
    assert text_of(run, "azureml-logs/70_driver_log.txt") == "attempt 3 goes on from step 2\n"
    assert processes_of(run.id) == []


@pytest.mark.parametrize("kept", [True, False], ids=["after it kept the failure", "before it kept the failure"])
def test_the_dispatcher_was_killed_just(slow: Retried, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """These last microseconds; so what a kill there leaves behind is made by hand."""
    run = slow.submit("sys.exit(7 if attempt < 3 else 0)")
    until(lambda: run.get_status() == "Starting" and (run_folder(run).attempt_logs / "70_driver_log.txt").exists())
    slow.kill_dispatcher()
    log = run_folder(run).attempt_logs / "70_driver_log.txt"
    log.rename(run_folder(run).logs / log.name)
    run_folder(run).attempt_logs.rmdir()
    if not kept:
        run_folder(run).failure.unlink()
    monkeypatch.setenv("TRAINMASTER_RETRY_SECONDS", "0.1")
    check_once(run)


@pytest.mark.local_only("it kills the dispatcher of its own workspace")
def test_a_storm_of_killed_dispatchers(shared: Retried) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    runs = [shared.submit("time.sleep(0.05)\nsys.exit(5)", max_retries=4) for _ in range(2)]
    kills = 0
    while kills < 15 and any(run.get_status() != "Failed" for run in runs):
        time.sleep(chance.random() * 0.4)
        shared.kill_dispatcher()
        kills += 1
    for run in runs:
        details = ended(run)
        assert (details["status"], begun(run)) == ("Failed", [1, 2, 3, 4, 5])
        assert details["error"]["message"].startswith("5 attempts failed; the last one:")
        assert [each["number"] for each in details["attempts"]] == [1, 2, 3, 4, 5]
        assert run.get_metrics() == {"step": [1, 2, 3, 4, 5]}
        assert processes_of(run.id) == []


# v1's resume_from: another run goes on from what this one kept on a datastore.
CHECKPOINTS = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--save-to")
parser.add_argument("--resume-from")
given = parser.parse_args()
step = 0
if given.resume_from:
    assert given.resume_from == os.environ["AZUREML_DATAREFERENCE_MODEL_LOCATION"], given.resume_from
    with open(os.path.join(given.resume_from, "checkpoint.txt")) as file:
        step = int(file.read())
print("from step", step)
step += given.steps
os.makedirs(given.save_to or "outputs", exist_ok=True)
with open(os.path.join(given.save_to or "outputs", "checkpoint.txt"), "w") as file:
    file.write(str(step))
"""


def test_resume_from_goes_on_from_the_checkpoints_of_another_run(shared: Retried, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text(CHECKPOINTS)
    store = shared.workspace.get_default_datastore()
    experiment = Experiment(shared.workspace, "resumed")
    settings: dict[str, Any] = {"entry_script": "train.py", "compute_target": "local"}
    settings["user_managed"] = shared.user_managed
    saved = store.path("checkpoints/first").as_upload()
    first = Estimator(str(source), script_params={"--steps": 3, "--save-to": saved}, **settings)
    assert ended(experiment.submit(first))["status"] == "Completed"

    second = Estimator(
        str(source),
        script_params={"--steps": 4},
        resume_from=DataPath(datastore=store, path_on_datastore="checkpoints/first"),
        **settings,
    )
    run = experiment.submit(second)
    assert ended(run)["status"] == "Completed"
    assert text_of(run, "azureml-logs/70_driver_log.txt") == "from step 3\n"
    assert text_of(run, "outputs/checkpoint.txt") == "7"

    # What a run left in its outputs is put on a datastore, and gone on from there; now with a ScriptRunConfig.
    run.download_file("outputs/checkpoint.txt", output_file_path=str(tmp_path / "kept" / "checkpoint.txt"))
    store.upload(str(tmp_path / "kept"), target_path="checkpoints/second", overwrite=True, show_progress=False)
    third = ScriptRunConfig(str(source), "train.py", ["--steps", 1], resume_from=DataPath(store, "checkpoints/second"))
    third.run_config.environment.python.user_managed_dependencies = shared.user_managed
    run = experiment.submit(third)
    assert ended(run)["status"] == "Completed"
    assert text_of(run, "outputs/checkpoint.txt") == "8"


def test_resume_from_what_is_not_there_is_told(shared: Retried, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text(CHECKPOINTS)
    config = ScriptRunConfig(
        str(source),
        "train.py",
        ["--steps", 1],
        resume_from=DataPath(shared.workspace.get_default_datastore(), "no/such/folder"),
    )
    config.run_config.environment.python.user_managed_dependencies = shared.user_managed
    details = ended(Experiment(shared.workspace, "resumed").submit(config))
    assert details["status"] == "Failed"
    assert "has nothing at no/such/folder" in details["error"]["message"]
