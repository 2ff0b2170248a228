"""What can never run on a target."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.runs.capacity import MOST_PROCESSES, check_fits
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.job_spec import Distribution, JobSpec
from trainmaster.shared.records import TargetRecord


def target(name="box", nodes=2):
    return TargetRecord(name, "local", nodes, 1, 0)


def test_what_never_fits():
    spec = JobSpec("/src", "box", script="train.py", node_count=3)
    check_fits(spec, target(nodes=3))
    with pytest.raises(ComputeTargetException, match="node_count=3 can never fit: target 'box' has 2 nodes") as caught:
        check_fits(spec, target(nodes=2))
    assert "--nodes 3" in caught.value.hint


@pytest.mark.parametrize("kind", ["mpi", "torch", "parameter_server"])
def test_a_slip_of_the_pen_is_refused_before_it_is_planned(kind):
    check_fits(gpu_job(MOST_PROCESSES - 5, kind=kind, use_gpu=False), target(nodes=1))
    with pytest.raises(ComputeTargetException, match="processes on one node are too many"):
        check_fits(gpu_job(10**9, kind=kind, use_gpu=False), target(nodes=1))


def gpu_job(processes=1, node_count=1, kind="mpi", **changes):
    counts = {
        "single": {},
        "mpi": {"process_count_per_node": processes},
        "torch": {"process_count": processes * node_count},
        "parameter_server": {"worker_count": processes, "parameter_server_count": 5},
    }
    distribution = Distribution(kind=kind, **counts[kind])
    settings = {"node_count": node_count, "distribution": distribution, "use_gpu": True, **changes}
    return JobSpec("/src", "box", script="train.py", **settings)


def gpu_target(gpus, **options):
    return TargetRecord("box", "local", 2, 1, gpus, options)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (gpu_job(3), 3),
        (gpu_job(3, node_count=2), 3),
        (gpu_job(4, kind="torch"), 4),
        (gpu_job(4, node_count=2, kind="torch"), 4),
        (gpu_job(5, node_count=2, kind="parameter_server"), 3),
    ],
)
def test_more_gpus_than_there_ever_are(spec, wanted):
    check_fits(spec, gpu_target(wanted))
    with pytest.raises(ComputeTargetException) as caught:
        check_fits(spec, gpu_target(2))
    assert f"{wanted} processes per node needs {wanted} GPUs per node, but target 'box' has 2" in caught.value.headline
    assert f"--gpus {wanted}" in caught.value.hint
    assert "TRAINMASTER_GPUS" in caught.value.hint


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        (gpu_job(kind="single"), gpu_target(1)),
        (gpu_job(4, use_gpu=False), gpu_target(2)),
        # The run gets a warning instead.
        (gpu_job(4), gpu_target(0)),
        (gpu_job(4), gpu_target(2, doubts=["vm_size 'STANDARD_NC24' has 4 GPUs per node, this machine has 2"])),
        (gpu_job(4, environment_variables={"TRAINMASTER_GPUS": "node"}), gpu_target(2)),
        # Servers need none.
        (gpu_job(2, node_count=2, kind="parameter_server"), gpu_target(1)),
    ],
)
def test_processes_that_have_gpus_enough_or_share_them(spec, target):
    check_fits(spec, target)
