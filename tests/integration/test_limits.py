"""Limits of nodes: CPUs and memory hold where the machine can enforce them, and a run says where they do not."""

from __future__ import annotations

import os

import pytest
from tests.conftest import ended

from trainmaster import ComputeTarget, LocalCompute
from trainmaster.job.agent import cgroup
from trainmaster.job.agent.limits import CPU, MEMORY, Limits
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.node_limits import find_enforced

MEGABYTE = 2**20
LOG = "azureml-logs/70_driver_log.txt"
# What the script sees of its CPUs: those it may run on, and the share of time that its cgroup has.
SHOW_CPUS = """
import os
own = [line[3:] for line in open('/proc/self/cgroup').read().splitlines() if line.startswith('0::')][0].strip('/')
quotas = [os.path.join(place, own, 'cpu.max') for place in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified')]
print(len(os.sched_getaffinity(0)), *[open(each).read().strip() for each in quotas if os.path.exists(each)], sep='|')
"""
# Slowly, so that the kernel need not kill anything else.
EAT = "held = []\nfor _ in range(200):\n    held.append(bytearray(os.urandom(1 << 20)))\nprint('ate it all')\n"


@pytest.fixture
def small(shared):
    """A target whose nodes have one CPU and 100 MB."""
    limits = LocalCompute.configuration(nodes=2, cpus_per_node=1, memory_per_node="100MB", limit_cpus=True)
    return ComputeTarget.create(shared, "small", limits)


def left(run):
    home = cgroup.find_home()
    return [name for name in os.listdir(home) if run.id in name] if home else []


def log_of(run):
    return run.get_details_with_logs()["logFiles"][LOG].strip()


def test_cpus_are_limited_with_or_without_a_cgroup(launch, small, capsys):
    run = launch(SHOW_CPUS, compute_target=small)
    assert ended(run)["status"] == "Completed"
    usable, *quotas = log_of(run).split("|")
    if CPU in find_enforced(Limits(1, None)):
        assert quotas == ["100000 100000"]
        assert "1 CPU (by cgroup)" in run.properties["trainmaster.limits"]
    else:
        assert usable == "1"
        assert "1 CPU (by CPU affinity)" in run.properties["trainmaster.limits"]
    assert left(run) == []


def test_memory_is_limited_or_the_run_says_that_it_is_not(launch, small):
    run = launch(f"import os\n{EAT}", compute_target=small)
    details = ended(run)
    warnings = [each for each in details.get("warnings", ()) if "not enforced" in str(each)]
    if MEMORY in find_enforced(Limits(None, MEGABYTE)):
        assert details["status"] == "Failed" and not warnings
        assert "100 MB (by cgroup)" in run.properties["trainmaster.limits"]
    else:
        assert details["status"] == "Completed" and log_of(run) == "ate it all"
        (warning,) = warnings
        assert "target 'small' allows 100 MB per node, but this is not enforced here:" in str(warning)
        assert "100 MB (not enforced here)" in run.properties["trainmaster.limits"]
    assert left(run) == []


def test_runs_of_other_targets_have_no_limits(launch, shared):
    ComputeTarget.create(shared, "plain", LocalCompute.configuration(nodes=1, cpus_per_node=1))
    run = launch(SHOW_CPUS, compute_target="plain")
    assert ended(run)["status"] == "Completed"
    usable, *quotas = log_of(run).split("|")
    assert usable == str(len(os.sched_getaffinity(0)))
    assert all(quota.startswith("max") for quota in quotas)
    assert "trainmaster.limits" not in run.properties


@pytest.mark.parametrize("memory", ["much", "1MB", 1.5, True, -1])
def test_memory_that_cannot_be(memory):
    with pytest.raises(ComputeTargetException, match="memory_per_node"):
        LocalCompute.configuration(memory_per_node=memory)
