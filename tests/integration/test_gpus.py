"""Who sees which GPU, with GPUs that are declared: the machine needs none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import end_workspace, ended, until

from trainmaster import ComputeTarget, Estimator, Experiment, Gloo, LocalCompute, Mpi, PyTorch, Workspace
from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.run.run import Run

pytestmark = [
    pytest.mark.timeout(600),
    # CUDA builds are not installed here: the scripts only look at their variables, in this Python or Open MPI's.
    pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated"),
]

LOOK = """
import os, sys
with open(sys.argv[1] + "-" + os.environ["TRAINMASTER_RANK"], "w") as file:
    file.write(os.environ["CUDA_VISIBLE_DEVICES"])
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experiment]:
    workspace = Workspace.create("gpus", path=tmp_path_factory.mktemp("gpus") / "workspace", show_output=False)
    ComputeTarget.create(workspace, "two-by-four", LocalCompute.configuration(nodes=2, gpus_per_node=4))
    ComputeTarget.create(workspace, "one-by-two", LocalCompute.configuration(nodes=1, gpus_per_node=2))
    yield Experiment(workspace, "gpus")
    end_workspace(workspace.path)


@pytest.fixture
def send(experiment: Experiment, tmp_path: Path) -> Callable[..., Run]:
    def submit(script: str, kind: Any = Estimator, **settings: Any) -> Run:
        source = tmp_path / "source"
        source.mkdir(exist_ok=True)
        (source / "train.py").write_text(script)
        settings = {"user_managed": True, "use_gpu": True, "script_params": {str(tmp_path / "seen"): ""}, **settings}
        return experiment.submit(kind(str(source), entry_script="train.py", **settings))

    return submit


def seen(run: Run, base: Path, ranks: int) -> list[str]:
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    return [(base / f"seen-{rank}").read_text() for rank in range(ranks)]


def test_one_process_sees_all_of_its_node(send: Callable[..., Run], tmp_path: Path) -> None:
    assert seen(send(LOOK, compute_target="two-by-four"), tmp_path, 1) == ["0,1,2,3"]


@pytest.mark.parametrize("backend", [Mpi(2), Gloo()], ids=["mpi", "gloo"])
def test_each_process_sees_its_share(send: Callable[..., Run], tmp_path: Path, backend: Any) -> None:
    # A user's own Python has no Open MPI: that run has an environment of its own.
    own = {"user_managed": False} if isinstance(backend, Mpi) else {}
    run = send(
        LOOK,
        kind=Estimator if isinstance(backend, Mpi) else PyTorch,
        compute_target="two-by-four",
        node_count=2,
        process_count_per_node=2,
        distributed_training=backend,
        **own,
    )
    assert seen(run, tmp_path, 4) == ["0,1", "2,3", "4,5", "6,7"]


def test_all_of_the_node_for_programs_that_choose_by_their_local_rank(send: Callable[..., Run], tmp_path: Path) -> None:
    run = send(
        LOOK,
        kind=PyTorch,
        compute_target="one-by-two",
        process_count_per_node=3,
        distributed_training=Gloo(),
        environment_variables={"TRAINMASTER_GPUS": "node"},
    )
    assert seen(run, tmp_path, 3) == ["0,1"] * 3


def test_more_than_there_ever_are_is_refused_at_submit(send: Callable[..., Run], experiment: Experiment) -> None:
    before = len(list(experiment.get_runs()))
    with pytest.raises(ComputeTargetException, match="needs 3 GPUs per node, but target 'one-by-two' has 2") as caught:
        send(LOOK, compute_target="one-by-two", process_count_per_node=3, distributed_training=Mpi(3))
    assert "--gpus 3" in caught.value.hint
    with pytest.raises(ComputeTargetException, match="node_count=2 can never fit: target 'one-by-two' has 1 node"):
        send(LOOK, compute_target="one-by-two", node_count=2, distributed_training=Mpi())
    assert len(list(experiment.get_runs())) == before


def test_more_than_are_free_now_waits(send: Callable[..., Run], tmp_path: Path, gate: Callable[..., Any]) -> None:
    door = gate()
    first = send(door.wait, compute_target="one-by-two")
    door.await_arrival()
    second = send(LOOK, compute_target="one-by-two")
    until(lambda: second.get_status() == "Queued", what="waiting for the GPUs")
    assert first.id in second.get_details()["waitingFor"]
    door.open()
    assert ended(first)["status"] == "Completed"
    assert seen(second, tmp_path, 1) == ["0,1"]


def would_wait_for(workspace: Workspace, source: Path, target: str) -> str:
    """What `submit --dry-run` says."""
    wish = ["--target", target, "--user-managed", "--dry-run", "--json"]
    command = [sys.executable, "-m", "trainmaster.cli", "submit", str(source), "train.py", *wish]
    done = subprocess.run(
        [*command, "--workspace", str(workspace.path)], capture_output=True, text=True, check=True, timeout=120
    )
    return str(json.loads(done.stdout)["target"]["waiting_for"])


def test_gpus_that_a_run_of_another_target_has_are_waited_for(
    send: Callable[..., Run], tmp_path: Path, gate: Callable[..., Any]
) -> None:
    door = gate()
    first = send(door.wait, compute_target="one-by-two")
    door.await_arrival()
    # One node of the two has other GPUs.
    assert seen(send(LOOK, compute_target="two-by-four"), tmp_path, 1) == ["4,5,6,7"]
    both = send(LOOK, PyTorch, compute_target="two-by-four", node_count=2, distributed_training=Gloo())
    until(lambda: both.get_status() == "Queued", what="waiting for the GPUs of another target")
    assert f"run {first.id} of another target needs its GPUs" in both.get_details()["waitingFor"]
    assert first.id in would_wait_for(both.experiment.workspace, tmp_path / "source", "two-by-four")
    door.open()
    assert ended(first)["status"] == "Completed"
    assert seen(both, tmp_path, 2) == ["0,1,2,3", "4,5,6,7"]


def test_a_target_without_gpus_is_a_warning(send: Callable[..., Run], tmp_path: Path) -> None:
    run = send(LOOK, compute_target="local")
    assert seen(run, tmp_path, 1) == [""]
    warnings = [each["message"] for each in run.get_details()["warnings"]]
    assert "use_gpu=True, but target 'local' has no GPUs: the script runs on the CPU" in warnings
