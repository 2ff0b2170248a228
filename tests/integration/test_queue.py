"""Targets and the queue: first come first served, a reason for every wait, GPUs handed out."""

from __future__ import annotations

import pytest
from tests.conftest import ended, until

from trainmaster import ComputeTarget, Experiment, Gloo, LocalCompute
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.job_spec import JobSpec


@pytest.fixture
def box(shared):
    return ComputeTarget.create(shared, "box", LocalCompute.configuration(nodes=1, cpus_per_node=1, gpus_per_node=0))


def test_first_come_first_served(launch, gate, box, tmp_path):
    here = gate("here")
    order = tmp_path / "order"
    first = launch(here.wait, compute_target=box)
    here.await_arrival()
    later = [launch(f"open({str(order)!r}, 'a').write('{n}')", compute_target="box") for n in range(4)]
    sentence = f"in the queue: waiting for 1 of 1 node on 'box': run {first.id} holds it"
    assert until(lambda: later[0].get_detailed_status() == {"status": "Queued", "details": f"1st {sentence}"})
    assert until(lambda: later[3].get_detailed_status()["details"] == f"4th {sentence}")
    assert later[0].get_details()["waitingFor"] == f"1st {sentence}"
    status = box.get_status()
    assert (status["nodes"], status["busy"], status["idle"], status["waiting"]) == (1, 1, 0, 4)
    assert not order.exists()
    here.open()
    assert [ended(run)["status"] for run in (first, *later)] == ["Completed"] * 5
    assert order.read_text() == "0123"
    assert "waitingFor" not in later[0].get_details()
    assert box.get_status()["busy"] == 0


def test_priority_and_small_runs(launch, gate, shared, tmp_path):
    """A run of higher priority comes first; a small one that ends in time starts before a large one."""
    ComputeTarget.create(shared, "trio", LocalCompute.configuration(nodes=3, cpus_per_node=1, gpus_per_node=0))
    order = tmp_path / "order"
    here, there = gate("here"), gate("there")
    holder = launch(here.wait, compute_target="trio", max_run_duration_seconds=3600)
    here.await_arrival()
    large = {"compute_target": "trio", "node_count": 3, "distributed_training": Gloo()}
    first = launch(f"open({str(order)!r}, 'a').write('a')", **large)
    until(lambda: first.get_status() == "Queued", what="the first to wait")
    urgent = launch(f"open({str(order)!r}, 'a').write('b')", **large, priority=5)
    reason = "in the queue: waiting for 3 of 3 nodes on 'trio', of which 2 are free"
    until(lambda: urgent.get_detailed_status()["details"].startswith(f"1st {reason}"), what="the urgent to be first")
    until(lambda: first.get_detailed_status()["details"].startswith(f"2nd {reason}"), what="the first to be second")
    assert ended(launch("", compute_target="trio", max_run_duration_seconds=60))["status"] == "Completed"
    # Without a time limit it could delay the first.
    endless = launch(there.wait, compute_target="trio", priority=-1)
    until(lambda: endless.get_detailed_status()["details"].startswith("3rd in the queue"), what="the last to wait")
    assert (urgent.properties["trainmaster.priority"], "trainmaster.priority" in first.properties) == ("5", False)
    here.open()
    assert [ended(run)["status"] for run in (holder, urgent, first)] == ["Completed"] * 3
    assert order.read_text() == "bbbaaa"
    there.await_arrival()
    there.open()
    assert ended(endless)["status"] == "Completed"


def test_two_nodes_run_two(launch, gate, shared):
    ComputeTarget.create(shared, "pair", LocalCompute.configuration(nodes=2, cpus_per_node=1, gpus_per_node=0))
    gates = [gate("a"), gate("b")]
    runs = [launch(each.wait, compute_target="pair") for each in gates]
    for each in gates:
        each.await_arrival()
    third = launch("", compute_target="pair")
    reason = until(lambda: third.get_detailed_status()["details"])
    assert reason.startswith("1st in the queue: waiting for 1 of 2 nodes on 'pair': runs ")
    assert all(run.id in reason for run in runs)
    gates[1].open()
    assert ended(third)["status"] == "Completed"
    until(lambda: runs[0].get_status() == "Running", what="that the other one runs")
    gates[0].open()
    assert [ended(run)["status"] for run in runs] == ["Completed"] * 2


def test_cancel_while_queued(launch, gate, box, tmp_path):
    here = gate("here")
    first = launch(here.wait, compute_target=box)
    here.await_arrival()
    second = launch(f"open({str(tmp_path / 'ran')!r}, 'w')", compute_target=box)
    third = launch("", compute_target=box)
    until(lambda: second.get_status() == "Queued")
    second.cancel()
    assert ended(second)["status"] == "Canceled"
    assert until(lambda: third.get_detailed_status()["details"].endswith("holds it"))
    here.open()
    assert ended(first)["status"] == ended(third)["status"] == "Completed"
    assert not (tmp_path / "ran").exists()


def test_full_target_does_not_hold_up_another(launch, gate, box):
    here = gate("here")
    first = launch(here.wait, compute_target=box)
    here.await_arrival()
    behind = launch("", compute_target=box)
    assert ended(launch("", compute_target="local"))["status"] == "Completed"
    here.open()
    ended(first), ended(behind)


def test_request_that_never_fits_is_refused(shared, project, box):
    experiment = Experiment(shared, "never")
    spec = JobSpec(source_directory=str(project(train="")), target="box", script="train.py", node_count=3)
    with pytest.raises(ComputeTargetException, match="node_count=3 can never fit: target 'box' has 1 node"):
        experiment.send(spec, {}, run_type="azureml.scriptrun")
    assert list(experiment.get_runs()) == []


def test_unknown_target(launch, shared):
    with pytest.raises(ComputeTargetException, match=r"ComputeTargetNotFound.*'nowhere'"):
        launch("", compute_target="nowhere")
    with pytest.raises(ComputeTargetException, match="ComputeTargetNotFound"):
        ComputeTarget(shared, "nowhere")


def test_gpus_are_handed_out(launch, gate, shared):
    ComputeTarget.create(shared, "gpus", LocalCompute.configuration(nodes=2, cpus_per_node=1, gpus_per_node=2))
    show = "import os\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n"
    gates = [gate("a"), gate("b")]
    runs = [launch(show + each.wait, compute_target="gpus") for each in gates]
    for each in gates:
        each.await_arrival()
    for each in gates:
        each.open()
    seen = []
    for run in runs:
        ended(run)
        seen.append(run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"].strip())
    assert sorted(seen) == ["0,1", "2,3"]


def test_target_is_used_again_by_its_next_run(launch, box):
    for _ in range(3):
        assert ended(launch("", compute_target=box))["status"] == "Completed"


@pytest.mark.parametrize("name", ["local", "amlcompute", "containerinstance", "a", "9x", "a_b", "../x", "x" * 64, None])
def test_names_that_cannot_be(shared, name):
    with pytest.raises(ComputeTargetException):
        ComputeTarget.create(shared, name, LocalCompute.configuration())


@pytest.mark.parametrize(
    "size", [{"nodes": 0}, {"nodes": 1.5}, {"cpus_per_node": 0}, {"gpus_per_node": -1}, {"nodes": True}]
)
def test_sizes_that_cannot_be(size):
    with pytest.raises(ComputeTargetException, match=next(iter(size))):
        LocalCompute.configuration(**size)


def test_configuration_of_something_else(shared):
    with pytest.raises(ComputeTargetException, match="does not describe"):
        ComputeTarget.create(shared, "wrong", {"nodes": 1})


def test_found_listed_deleted(launch, gate, shared):
    made = ComputeTarget.create(shared, "passing", LocalCompute.configuration(nodes=1))
    assert isinstance(ComputeTarget(shared, "passing"), LocalCompute)
    assert {"local", "passing"} <= {target.name for target in ComputeTarget.list(shared)}
    assert (made.type, made.provisioning_state, made.workspace) == ("local", "Succeeded", shared)
    made.wait_for_completion(show_output=False)
    here = gate("here")
    run = launch(here.wait, compute_target=made)
    here.await_arrival()
    with pytest.raises(ComputeTargetException, match="in use"):
        made.delete()
    here.open()
    ended(run)
    made.delete()
    with pytest.raises(ComputeTargetException):
        ComputeTarget(shared, "passing")
    with pytest.raises(ComputeTargetException, match="cannot be deleted"):
        shared.compute_targets["local"].delete()
