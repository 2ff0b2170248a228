"""Elastic runs: a lost node restarts the others from the checkpoint, and joins them again at the next restart."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import dispatcher_handle, end_workspace, ended, run_folder, until, wait_gone
from trainmaster.errors import RunConfigurationException, TrainingException

from trainmaster import ComputeTarget, Estimator, Experiment, Gloo, LocalCompute, PyTorchConfiguration, Workspace
from trainmaster.sdk.run.run import Run
from trainmaster.shared.attempts import current_attempt
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.json_files import read_json

pytestmark = pytest.mark.timeout(600)

# Every rank writes which world it sees, and waits for the others. In the attempts that the test names it then waits for
# its end, or fails.
SCRIPT = """
import os, sys, time
attempt, rank, world = (int(os.environ[name]) for name in ("TRAINMASTER_ATTEMPT", "RANK", "WORLD_SIZE"))
print("rank", rank, "of", world, "on node", os.environ["NODE_RANK"], flush=True)
seen = "outputs/seen-%d-" % attempt
with open(seen + "%d.part" % rank, "w") as file:
    file.write("%d %s" % (world, os.environ["GROUP_WORLD_SIZE"]))
os.rename(seen + "%d.part" % rank, seen + "%d.txt" % rank)
while not all(os.path.exists(seen + "%d.txt" % other) for other in range(world)):
    time.sleep(0.01)
if str(attempt) in sys.argv[1].split(","):
    time.sleep(600)
if str(attempt) in sys.argv[2].split(","):
    sys.exit(1)
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_RETRY_SECONDS", "0.1")
        found = Workspace.create("elastic", path=tmp_path_factory.mktemp("elastic") / "workspace", show_output=False)
        ComputeTarget.create(found, "box", LocalCompute.configuration(nodes=3))
        yield found
        end_workspace(found.path)


def submit(workspace: Workspace, folder: Path, waits: str, fails: str = "-", **settings: Any) -> Run:
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "train.py").write_text(SCRIPT)
    given = {"distributed_training": Gloo(min_nodes=2), "node_count": 3, **settings}
    estimator = Estimator(
        str(source),
        entry_script="train.py",
        script_params={waits: fails},
        compute_target="box",
        user_managed=True,
        **given,
    )
    return Experiment(workspace, "elastic").submit(estimator)


def seen(run: Run, attempt: int) -> list[str]:
    """What each rank of an attempt saw: the number of ranks and of nodes."""
    outputs = run_folder(run).files / "outputs"
    return [path.read_text() for path in sorted(outputs.glob(f"seen-{attempt}-*.txt"))]


def wait_for_ranks(run: Run, attempt: int, count: int) -> None:
    until(lambda: len(seen(run, attempt)) == count, what="all ranks")


def kill_node(run: Run, number: int) -> None:
    """As if a machine lost its power: the agent ends, and its processes with it."""
    folder = current_attempt(run_folder(run))
    claim = until(lambda: read_json(folder.node(number) / "agent.json"))
    os.kill(claim["pid"], signal.SIGKILL)


def attempts(run: Run) -> list[tuple[str, str | None]]:
    return [(each["status"], (each.get("error") or {}).get("code")) for each in ended(run).get("attempts", ())]


def test_a_lost_node_restarts_the_others_and_returns_at_the_next_restart(workspace: Workspace, tmp_path: Path) -> None:
    run = submit(workspace, tmp_path, waits="1", fails="2", max_retries=1)
    wait_for_ranks(run, 1, 3)
    kill_node(run, 1)
    assert ended(run)["status"] == "Completed"
    # Two went on. They failed by themselves, and then the third was there again.
    assert (seen(run, 1), seen(run, 2), seen(run, 3)) == (["3 3"] * 3, ["2 2"] * 2, ["3 3"] * 3)
    assert attempts(run) == [("Failed", "NodeAgentLost"), ("Failed", "ScriptFailed"), ("Completed", None)]
    text = (run_folder(run).logs / "attempt_1" / "70_driver_log_0.txt").read_text()
    assert "starting attempt 2 on 2 of 3 nodes" in text


def test_the_first_node_can_be_lost_without_retries(workspace: Workspace, tmp_path: Path) -> None:
    run = submit(workspace, tmp_path, waits="1")
    wait_for_ranks(run, 1, 3)
    kill_node(run, 0)
    assert ended(run)["status"] == "Completed"
    assert seen(run, 2) == ["2 2"] * 2


def test_with_too_few_nodes_left_the_run_fails(workspace: Workspace, tmp_path: Path) -> None:
    run = submit(workspace, tmp_path, waits="1,2")
    wait_for_ranks(run, 1, 3)
    kill_node(run, 2)
    wait_for_ranks(run, 2, 2)
    kill_node(run, 1)
    details = ended(run)
    assert (details["status"], details["error"]["code"]) == ("Failed", "NodeAgentLost")


def test_the_next_dispatcher_keeps_the_nodes_of_an_attempt(workspace: Workspace, tmp_path: Path) -> None:
    run = submit(workspace, tmp_path, waits="1,2", fails="2")
    wait_for_ranks(run, 1, 3)
    kill_node(run, 0)
    wait_for_ranks(run, 2, 2)
    handle = dispatcher_handle(WorkspaceFolder(workspace.path))
    assert handle is not None
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    wait_gone(handle)
    assert run.get_status() in ("Starting", "Running")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert seen(run, 2) == ["2 2"] * 2


def test_processes_per_node_stay(workspace: Workspace, tmp_path: Path) -> None:
    training = PyTorchConfiguration("Gloo", process_count=4, min_nodes=1)
    run = submit(workspace, tmp_path, waits="1", node_count=2, distributed_training=training)
    wait_for_ranks(run, 1, 4)
    kill_node(run, 0)
    assert ended(run)["status"] == "Completed"
    assert seen(run, 2) == ["2 1"] * 2


def test_a_run_starts_with_the_nodes_that_are_free_and_gets_the_others_at_its_restart(
    workspace: Workspace, tmp_path: Path
) -> None:
    holder = submit(workspace, tmp_path / "holder", waits="1", node_count=1, distributed_training=Gloo())
    wait_for_ranks(holder, 1, 1)
    training = Gloo(min_nodes=1, max_nodes=3, wait_seconds=0)
    run = submit(workspace, tmp_path, waits="1", node_count=1, distributed_training=training)
    wait_for_ranks(run, 1, 2)
    sentence = "the run starts with 2 of 3 nodes: the others were not free within 0 s"
    assert sentence in [each["message"] for each in run.get_details()["warnings"]]
    holder.cancel()
    assert ended(holder)["status"] == "Canceled"
    kill_node(run, 1)
    assert ended(run)["status"] == "Completed"
    # The node of the other run takes the place of the lost one.
    assert (seen(run, 1), seen(run, 2)) == (["2 2"] * 2, ["2 2"] * 2)


def test_a_run_that_waits_for_all_its_nodes_says_so(workspace: Workspace, tmp_path: Path) -> None:
    holder = submit(workspace, tmp_path / "holder", waits="1", node_count=1, distributed_training=Gloo())
    wait_for_ranks(holder, 1, 1)
    run = submit(workspace, tmp_path, waits="-")
    reason = until(lambda: run.get_details().get("waitingFor"), what="a reason")
    assert "waiting for 3 of 3 nodes" in reason
    holder.cancel()
    assert ended(run)["status"] == "Completed"
    assert seen(run, 1) == ["3 3"] * 3


def test_more_least_nodes_than_nodes_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(RunConfigurationException, match="min_nodes=4 is more than node_count=3"):
        submit(workspace, tmp_path, waits="-", distributed_training=Gloo(min_nodes=4))
    with pytest.raises(RunConfigurationException, match="max_nodes=4 is not node_count=3"):
        submit(workspace, tmp_path / "other", waits="-", distributed_training=Gloo(max_nodes=4))
    with pytest.raises(TrainingException, match="wait_seconds must be at least 0"):
        Gloo(min_nodes=1, wait_seconds=-1)
    with pytest.raises(TrainingException, match="min_nodes must be at least 1"):
        Gloo(min_nodes=0)
