"""Children: made in the script or outside, listed, and ended at the latest with their parent."""

from __future__ import annotations

import pytest
from tests.conftest import ended

from trainmaster import Estimator, Experiment
from trainmaster.job.errors import UserErrorException

BACKENDS = ("local", "server")

pytestmark = pytest.mark.usefixtures("notebook_folder")

HEAD = "from azureml.core import Run\nrun = Run.get_context()\n"


def by_name(run, **filters):
    return {child.name: child.get_status() for child in run.get_children(**filters)}


def test_children_of_a_script(launch):
    run = launch(
        HEAD
        + """
with run.child_run('with') as child:
    child.log('m', 1)
    child.child_run('grandchild').complete()
failed = run.child_run('failed'); failed.fail('why')
left = run.child_run('left'); left.log('m', 2)
"""
    )
    assert ended(run)["status"] == "Completed"
    assert by_name(run) == {"with": "Completed", "failed": "Failed", "left": "Completed"}
    assert by_name(run, recursive=True).keys() == {"with", "failed", "left", "grandchild"}
    assert by_name(run, status="Failed") == {"failed": "Failed"}
    failed = next(run.get_children(status="Failed"))
    assert failed.get_details()["error"]["message"] == "why"
    assert failed.parent.id == run.id
    assert next(run.get_children(status="Completed")).get_metrics() == {"m": 2}


@pytest.mark.parametrize(("ending", "state"), [("raise SystemExit(1)", "Failed"), ("", "Completed")])
def test_children_left_behind_end_like_their_parent(launch, ending, state):
    run = launch(f"{HEAD}child = run.child_run('left')\nchild.child_run('below')\n{ending}")
    assert ended(run)["status"] == state
    assert by_name(run, recursive=True) == {"left": state, "below": state}
    if state == "Failed":
        assert run.id in next(run.get_children()).get_details()["error"]["message"]


def test_children_of_a_cancelled_run(launch, gate):
    here = gate("here")
    run = launch(f"{HEAD}run.child_run('left')\n{here.wait}")
    here.await_arrival()
    assert by_name(run) == {"left": "Running"}
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert by_name(run) == {"left": "Canceled"}


def test_waiting_for_a_child_that_the_script_ends(launch, gate):
    first, second = gate("first"), gate("second")
    run = launch(f"{HEAD}child = run.child_run('child')\n{first.wait}\nchild.complete()\n{second.wait}")
    first.await_arrival()
    child = next(run.get_children())
    assert child.get_status() == "Running"
    first.open()
    assert child.wait_for_completion()["status"] == "Completed"
    second.await_arrival()
    second.open()
    ended(run)


def test_children_from_outside(shared):
    parent = Experiment(shared, "outside").start_logging(snapshot_directory=None)
    one = parent.child_run("one")
    assert one.get_status() == "Running"
    made = parent.create_children(tag_key="n", tag_values=[1, 2])
    assert [child.tags for child in made] == [{"n": "1"}, {"n": "2"}]
    assert len(parent.create_children(count=3)) == 3
    assert len(list(parent.get_children())) == 6
    assert [child.id for child in parent.get_children(tags={"n": 2})] == [made[1].id]
    made[0].fail("so")
    parent.complete()
    assert sorted(child.get_status() for child in parent.get_children()) == ["Completed"] * 5 + ["Failed"]
    assert one.parent.id == parent.id
    assert parent.parent is None


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"count": 0},
        {"count": 101},
        {"count": "3"},
        {"count": 1, "tag_key": "a", "tag_values": [1]},
        {"tag_key": "a"},
    ],
)
def test_children_that_cannot_be(shared, arguments):
    parent = Experiment(shared, "wrong").start_logging(snapshot_directory=None)
    with pytest.raises(UserErrorException):
        parent.create_children(**arguments)
    assert list(parent.get_children()) == []
    parent.complete()


@pytest.mark.parametrize("run_id", ["../up", "a/b", "", "x" * 300, "a\nb"])
def test_ids_that_cannot_be(shared, run_id):
    parent = Experiment(shared, "wrong").start_logging(snapshot_directory=None)
    if run_id:
        with pytest.raises(UserErrorException, match="cannot be a run id"):
            parent.child_run(run_id=run_id)
    else:
        assert parent.child_run(run_id=run_id).id
    parent.complete()


def test_child_with_a_job(launch, shared, project):
    parent = Experiment(shared, "jobs").start_logging(snapshot_directory=None)
    source = project("child", train="print('I am a child')")
    estimator = Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True)
    child = parent.submit_child(estimator, tags={"a": "b"})
    # It has a job of its own: the end of its parent is not its end.
    parent.complete()
    assert ended(child)["status"] == "Completed"
    assert child.parent.id == parent.id
    assert [each.id for each in parent.get_children(tags="a")] == [child.id]
    assert child.id not in [each.id for each in parent.experiment.get_runs()]


def test_child_that_a_job_submits(launch):
    """As v1's documents have it: a parent script starts others and waits for them."""
    parent = launch(
        """
from azureml.core import Run, ScriptRunConfig, RunConfiguration
run = Run.get_context()
open('child.py', 'w').write("print('I am a child')")
config = RunConfiguration()
config.environment.python.user_managed_dependencies = True
run.submit_child(ScriptRunConfig('.', 'child.py', run_config=config), tags={'a': 'b'})
for child in run.get_children():
    child.wait_for_completion()
    print(child.get_status(), child.parent.id == run.id)
"""
    )
    assert ended(parent)["status"] == "Completed"
    [child] = parent.get_children(tags="a")
    assert (child.get_status(), child.parent.id) == ("Completed", parent.id)
    assert "Completed True" in parent.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]


def test_id_of_another_run(shared):
    parent = Experiment(shared, "wrong").start_logging(snapshot_directory=None)
    for taken in (parent.id, parent.child_run().child_run().id):
        with pytest.raises(UserErrorException, match="already"):
            parent.child_run(run_id=taken)
    assert parent.child_run(run_id="mine").id == parent.child_run(run_id="mine").id
    parent.complete()
