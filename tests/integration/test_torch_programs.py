"""Real programs of torch's kinds of distributed training, on local nodes, with what they saw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended, run_folder, until

from trainmaster import (
    ComputeTarget,
    Experiment,
    Gloo,
    LocalCompute,
    Mpi,
    Nccl,
    PyTorch,
    PyTorchConfiguration,
    ScriptRunConfig,
    Workspace,
)
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run

HERE = Path(__file__).parent

# Under MPI the estimator brings Horovod: minutes on a machine that has never compiled it.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def experiment(frameworks: Workspace) -> Experiment:
    ComputeTarget.create(frameworks, "two", LocalCompute.configuration(nodes=2))
    ComputeTarget.create(frameworks, "declared", LocalCompute.configuration(nodes=2, gpus_per_node=2))
    return Experiment(frameworks, "torch")


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """The folder and script of one of the programs, for an estimator."""

    def copied(program: str) -> dict[str, Any]:
        folder = tmp_path / "source"
        folder.mkdir()
        shutil.copy(HERE / program, folder / "train.py")
        return {
            "source_directory": str(folder),
            "entry_script": "train.py",
            "compute_target": "two",
            # All nodes are on this machine: without this each rank would have threads for all of its cores.
            "environment_variables": {"OMP_NUM_THREADS": "1"},
        }

    return copied


def seen_by(run: Run) -> dict[str, Any]:
    """What rank 0 wrote, once the run has ended well and nothing of it is left."""
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert processes_of(run.id) == []
    return json.loads((run_folder(run).files / "outputs" / "seen.json").read_text())


TRAINED = {
    "began_alike": False,
    "local_gradients_differ": True,
    "gradients_are_the_mean": True,
    "weights_are_identical": True,
    "learned": True,
}


def test_horovod(experiment, source):
    estimator = PyTorch(**source("horovod_scripts/train_torch.py"), node_count=2, distributed_training=Mpi())
    seen = seen_by(experiment.submit(estimator))
    assert seen == {**TRAINED, "framework": "2.13.0+cpu", "horovod": "0.28.1", "size": 2}


def test_torch_distributed_under_mpi(experiment, source):
    estimator = PyTorch(**source("torch_programs/ddp.py"), node_count=2, distributed_training=Mpi())
    assert seen_by(experiment.submit(estimator)) == {**TRAINED, "size": 2, "by_open_mpi": True}


def test_a_script_for_torchrun(experiment, source):
    estimator = PyTorch(
        **source("torch_programs/for_torchrun.py"),
        node_count=2,
        distributed_training=PyTorchConfiguration("Gloo", process_count=4),
    )
    assert seen_by(experiment.submit(estimator)) == {
        # Rank, local rank, node.
        "places": [[0, 0, 0], [1, 1, 0], [2, 0, 1], [3, 1, 1]],
        "local_world_size": 2,
        "group_world_size": 2,
        "role": ["default", 0, 4],
        "restarts": 0,
        "launched_by_torchrun": True,
    }


def test_fsdp(experiment, source):
    estimator = PyTorch(**source("torch_programs/fsdp.py"), node_count=2, distributed_training=Gloo())
    sharded = {"holds_a_part": True, "as_in_one_process": True, "learned": True}
    assert seen_by(experiment.submit(estimator)) == {"size": 2, "first": sharded, "second": sharded}


def test_the_run_configuration_of_later_v1(experiment, source):
    """`ScriptRunConfig` with a `PyTorchConfiguration` that says how many processes there are in all."""
    program = source("torch_programs/ddp.py")
    environment = PyTorch(**program).run_config.environment
    config = ScriptRunConfig(
        program["source_directory"],
        script="train.py",
        compute_target="two",
        environment=environment,
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=2, node_count=1),
    )
    assert seen_by(experiment.submit(config)) == {**TRAINED, "size": 2, "by_open_mpi": False}


def test_nccl_without_gpus_shows_the_error_of_the_script(experiment, source):
    """The plan is that of GPUs; what is missing here is told in torch's own words, of the rank that met it first."""
    program = {**source("torch_programs/nccl.py"), "compute_target": "declared"}
    run = experiment.submit(PyTorch(**program, node_count=2, distributed_training=Nccl()))
    details = ended(run)
    assert details["status"] == "Failed"
    error = details["error"]
    # It closes down after its exception. The other one's end may come in between, and then it is told to stop: whether
    # that or its own exit code comes first, the exception was before both.
    place = f"rank {error['rank']} on node {error['rank']}"
    said, how = error["message"].splitlines()[:2]
    assert said.startswith(f"{place}: "), error
    assert how in (f"{place} ended with exit code 1", f"{place} failed with an exception"), error
    assert "NCCL" in error["tail"].splitlines()[-1]
    logs = run_folder(run).files / "azureml-logs"
    shares = [(logs / f"70_driver_log_{rank}.txt").read_text().partition("\n")[0] for rank in (0, 1)]
    # The first to fail may end the other one before it says anything.
    assert shares[error["rank"]] == f"share of GPUs: {['0,1', '2,3'][error['rank']]}"
    assert processes_of(run.id) == []


WARM = """
import sys
warm = "torch" in sys.modules
import torch
from azureml.core import Run
run = Run.get_context()
run.log("warm", int(warm))
run.log("drawn", float(torch.rand(1)))
"""


def test_scripts_of_a_warm_torch_draw_numbers_of_their_own(experiment, project):
    estimator = PyTorch(
        str(project(train=WARM)),
        entry_script="train.py",
        compute_target="two",
        use_gpu=False,
        environment_variables={"OMP_NUM_THREADS": "1", "TRAINMASTER_WARM_IMPORTS": "torch"},
    )

    def trained() -> dict[str, Any]:
        run = experiment.submit(estimator)
        assert ended(run)["status"] == "Completed"
        return run.get_metrics()

    until(lambda: trained()["warm"], what="a warm Python")
    made = [trained() for _ in range(3)]
    assert [each["warm"] for each in made] == [1, 1, 1]
    assert len({each["drawn"] for each in made}) == 3
