"""Quotas: runs wait for them, say so, and start when there is room."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.conftest import ended, until

from trainmaster import (
    ComputeTarget,
    Estimator,
    Experiment,
    HyperDriveConfig,
    LocalCompute,
    PrimaryMetricGoal,
    RandomParameterSampling,
    uniform,
)
from trainmaster.job.errors import ComputeTargetException, UserErrorException
from trainmaster.job.script.identity import user_name


@pytest.fixture
def quotas(shared):
    """Sets quotas that end with the test."""
    owners = set()

    def put(owner, **limits):
        owners.add(owner)
        return shared.connection.call("quotas.set", owner=owner, **limits)

    ComputeTarget.create(shared, "quad", LocalCompute.configuration(nodes=4, cpus_per_node=1, gpus_per_node=0))
    yield put
    for owner in owners:
        shared.connection.call("quotas.set", owner=owner, runs=None, nodes=None, gpus=None, disk_bytes=None)


def test_a_run_waits_for_its_quota(launch, gate, quotas):
    quotas(user_name(), runs=1)
    here = gate("here")
    first = launch(here.wait, compute_target="quad")
    here.await_arrival()
    second, third = launch("", compute_target="quad"), launch("", compute_target="quad")
    sentence = f"waiting for the quota of user '{user_name()}': 1 of 1 active run in use"
    assert until(lambda: second.get_detailed_status() == {"status": "Queued", "details": sentence})
    assert until(lambda: third.get_detailed_status()["details"] == f"{sentence} (1 run ahead)")
    (report,) = quotas(user_name(), runs=2)
    assert report["quota"] == {"owner": user_name(), "runs": 2, "nodes": None, "gpus": None, "disk_bytes": None}
    assert report["runs"] == report["nodes"] == 2
    assert ended(second)["status"] == "Completed"
    here.open()
    assert [ended(run)["status"] for run in (first, third)] == ["Completed"] * 2


def test_a_run_that_can_never_start_is_refused(launch, quotas):
    quotas("*", nodes=0)
    with pytest.raises(ComputeTargetException, match=r"needs 1 node, but the quota of user .* allows 0 nodes"):
        launch("", compute_target="quad")
    with pytest.raises(UserErrorException, match="runs must be at least 0"):
        quotas("*", runs=-1)


def test_disk_of_ended_runs_counts(launch, quotas, shared):
    old = launch("import os; os.makedirs('outputs', exist_ok=True); open('outputs/x', 'wb').write(bytes(3_000_000))")
    assert ended(old)["status"] == "Completed"
    # The files of the run count although it ended before there was a quota.
    quotas("", disk_bytes=2_000_000)
    until(lambda: _disk(shared) > 2_000_000, what="that the run was measured")
    waiting = launch("", compute_target="quad")
    until(lambda: "waiting for the disk quota of the workspace" in waiting.get_detailed_status()["details"])
    assert waiting.get_status() == "Queued"
    before = _disk(shared)
    shared.connection.call("runs.delete", run_ids=[old.id])
    freed = _disk(shared)
    assert freed <= before - 3_000_000
    quotas("", disk_bytes=2**50)
    assert ended(waiting)["status"] == "Completed"
    until(lambda: _disk(shared) > freed, what="that the new run was measured")


def _disk(workspace):
    return workspace.connection.call("quotas.list")[0]["disk_bytes"]


def test_the_command_line(shared, quotas):
    def command(*words, code=0):
        program = [sys.executable, "-m", "trainmaster.cli", "quota", *words, "--workspace", str(shared.path)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    quotas("somebody")
    assert "no quotas" in command("list").stderr
    table = command("set", "somebody", "--gpus", "2", "--disk", "1.5GB").stdout.splitlines()
    assert [line.split() for line in table] == [
        ["WHO", "RUNS", "NODES", "GPUS", "DISK"],
        ["somebody", "0/2", "0", "B/1.5", "GB"],
    ]
    (found,) = json.loads(command("list", "--json").stdout)
    assert found["gpus"] == [0, 2] and found["runs"] == [0, None] and found["disk_bytes"][1] == 1.5 * 2**30
    command("set", "somebody", code=2)
    command("set", "somebody", "--gpus", "-3", code=2)
    command("set", "somebody", "--gpus", "none")
    assert json.loads(command("delete", "somebody", "--json").stdout) == []


def test_a_sweep_keeps_to_the_quota(shared, project, quotas, tmp_path):
    quotas(user_name(), runs=1)
    log = tmp_path / "log"
    script = f"""
import sys, time
from trainmaster import Run
log = {str(log)!r}
open(log, "a").write("begin\\n")
Run.get_context().log("x", 1.0)
open(log, "a").write("end\\n")
"""
    estimator = Estimator(str(project(train=script)), entry_script="train.py", compute_target="quad", user_managed=True)
    sampling = RandomParameterSampling({"x": uniform(0, 1)})
    config = HyperDriveConfig(sampling, "x", PrimaryMetricGoal.MAXIMIZE, 4, estimator=estimator, max_concurrent_runs=4)
    assert ended(Experiment(shared, "limited").submit(config))["status"] == "Completed"
    assert log.read_text().split() == ["begin", "end"] * 4
