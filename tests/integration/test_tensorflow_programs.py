"""Real programs of TensorFlow's kinds of distributed training, on two local nodes, with what they saw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended, run_folder

from trainmaster import ComputeTarget, Experiment, LocalCompute, Mpi, ParameterServer, TensorFlow, Workspace
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run

HERE = Path(__file__).parent

# Under MPI the estimator brings Horovod: minutes on a machine that has never compiled it.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def experiment(frameworks: Workspace) -> Experiment:
    ComputeTarget.create(frameworks, "four", LocalCompute.configuration(nodes=4))
    return Experiment(frameworks, "tensorflow")


@pytest.fixture
def estimator(tmp_path: Path) -> Callable[..., TensorFlow]:
    """An estimator for one of the programs, on two nodes."""

    def made(program: str, **settings: Any) -> TensorFlow:
        folder = tmp_path / "source"
        folder.mkdir()
        shutil.copy(HERE / program, folder / "train.py")
        return TensorFlow(str(folder), entry_script="train.py", compute_target="four", node_count=2, **settings)

    return made


def seen_by(run: Run) -> dict[str, Any]:
    """What the first task wrote, once the run has ended well and nothing of it is left."""
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert processes_of(run.id) == []
    return json.loads((run_folder(run).files / "outputs" / "seen.json").read_text())


def test_a_coordinator_ends_its_workers_and_servers(experiment, estimator):
    run = experiment.submit(
        estimator(
            "tensorflow_programs/coordinator.py",
            distributed_training=ParameterServer(worker_count=2, parameter_server_count=1),
            environment_variables={"TRAINMASTER_TF_CHIEF": "chief"},
        )
    )
    assert seen_by(run) == {
        "cluster": {"chief": 1, "ps": 1, "worker": 1},
        "weights_on_the_server": True,
        "steps_on_the_worker": True,
        "learned": True,
        "weights": [1, -2, 3],
    }


def test_workers_that_mirror_each_other(experiment, estimator):
    mirrored = estimator(
        "tensorflow_programs/mirrored.py",
        distributed_training=ParameterServer(worker_count=2, parameter_server_count=0),
    )
    assert seen_by(experiment.submit(mirrored)) == {
        "size": 2,
        "local_gradients_differ": True,
        "gradients_are_the_mean": True,
        "weights_are_identical": True,
        "weights": [1, -2, 3],
        "learned": True,
    }


@pytest.mark.skipif("3.7" not in all_pythons(), reason="there is no Python 3.7 on this machine")
def test_two_clusters_of_v1s_time_at_once(experiment, estimator):
    """The documents' own example, twice at the same time: neither meets the other's servers."""
    clusters = estimator(
        "tensorflow_programs/servers1.py",
        distributed_training=ParameterServer(worker_count=2, parameter_server_count=1),
        framework_version="1.13",
    )
    runs = [experiment.submit(clusters) for _ in range(2)]
    assert [seen_by(run) for run in runs] == [
        {
            "framework": "1.13.1",
            "environment": "cloud",
            "weights_on_the_server": True,
            # Of its own two workers, and of no other.
            "steps": 200,
            "weights": [1, -2, 3],
            "learned": True,
        }
    ] * 2
    plans = [json.loads((run_folder(run).node(0) / "plan.json").read_text()) for run in runs]
    clusters_seen = [json.loads(plan["processes"][0]["env"]["TF_CONFIG"])["cluster"] for plan in plans]
    addresses = [{*cluster["ps"], *cluster["worker"]} for cluster in clusters_seen]
    assert len(addresses[0] | addresses[1]) == 6


def test_horovod(experiment, estimator):
    run = experiment.submit(estimator("horovod_scripts/train_tensorflow.py", distributed_training=Mpi()))
    fitted = {"weights_are_identical": True, "losses_are_averaged": True, "learned": True, "rate": 0.02}
    assert seen_by(run) == {
        "framework": "2.21.0",
        "horovod": "0.28.1",
        "size": 2,
        "began_alike": False,
        "local_gradients_differ": True,
        "gradients_are_the_mean": True,
        "sgd": fitted,
        "adam": fitted,
    }
