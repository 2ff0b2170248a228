"""Experiments: names, labels, lists with filters."""

from __future__ import annotations

import pytest

from trainmaster import Experiment
from trainmaster.job.errors import TrainmasterError, UserErrorException

BACKENDS = ("local", "server")

pytestmark = pytest.mark.usefixtures("notebook_folder")


@pytest.mark.parametrize("name", ["../up", "", "a b", "a\nb", "-x", "_x", "x" * 256, "ü", None, 5])
def test_names_that_cannot_be(shared, name):
    with pytest.raises(UserErrorException, match="cannot be the name of an experiment"):
        Experiment(shared, name)


def test_longest_name_runs(launch):
    from tests.conftest import ended

    assert ended(launch("", experiment="x" * 255))["status"] == "Completed"


def test_made_once(shared):
    first, second = Experiment(shared, "same"), Experiment(shared, "same")
    assert first.id == second.id
    assert first.workspace is first.workspace_object is shared
    assert repr(first) == f"Experiment(Name: same, Workspace: {shared.name})"


def test_labels(shared):
    one = Experiment(shared, "labelled")
    one.set_tags({"a": "1", "b": 2})
    one.tag("c")
    one.remove_tags(["a"])
    other = Experiment(shared, "labelled")
    assert one.tags == other.tags == {"b": "2", "c": None}
    assert [e.name for e in Experiment.list(shared, tags="c")] == ["labelled"]
    assert [e.name for e in Experiment.list(shared, tags={"b": 2})] == ["labelled"]
    assert Experiment.list(shared, tags={"b": "3"}) == []


def test_archived(shared):
    one = Experiment(shared, "hidden")
    one.archive()
    assert one.archived_time is not None
    names = {
        view: [e.name for e in Experiment.list(shared, "hidden", view)]
        for view in ("ActiveOnly", "ArchivedOnly", "All")
    }
    assert names == {"ActiveOnly": [], "ArchivedOnly": ["hidden"], "All": ["hidden"]}
    with pytest.raises(UserErrorException, match="cannot be renamed"):
        one.reactivate("else")
    one.reactivate()
    one.refresh()
    assert one.archived_time is None
    with pytest.raises(UserErrorException, match="view_type"):
        Experiment.list(shared, view_type="Some")


def test_deleted_only_when_empty(shared):
    used, empty = Experiment(shared, "used"), Experiment(shared, "empty")
    used.start_logging(snapshot_directory=None).complete()
    with pytest.raises(TrainmasterError, match="used"):
        Experiment.delete(shared, used.id)
    Experiment.delete(shared, empty.id)
    assert Experiment.list(shared, "empty") == []


def test_runs_newest_first_with_filters(shared):
    experiment = Experiment(shared, "filtered")
    made = [experiment.start_logging(snapshot_directory=None, tags={"n": n, f"t{n % 2}": "x"}) for n in range(4)]
    made[0].add_properties({"p": "1"})
    child = made[1].child_run("c")
    for run in made[:3]:
        run.complete()
    made[3].fail("no")
    ids = [run.id for run in made]

    def found(**filters):
        return [ids.index(run.id) for run in experiment.get_runs(**filters)]

    assert found() == [3, 2, 1, 0]
    assert found(tags="t1") == [3, 1]
    assert found(tags={"n": 2}) == [2]
    assert found(tags={"n": 2, "t1": "x"}) == []
    assert found(properties="p") == found(properties={"p": 1}) == [0]
    assert found(type="azureml.interactive") == [3, 2, 1, 0]
    assert found(type="hyperdrive") == []
    with pytest.raises(UserErrorException, match="filter"):
        found(tags=["t1"])
    everything = [run.id for run in experiment.get_runs(include_children=True)]
    assert set(everything) == {*ids, child.id}
    assert [run.id for run in type(made[0]).list(experiment, status="Failed")] == [ids[3]]
    assert [run.number for run in experiment.get_runs()][-1] == 1


def test_more_runs_than_a_page(shared):
    experiment = Experiment(shared, "many")
    parent = experiment.start_logging(snapshot_directory=None)
    for _ in range(3):
        parent.create_children(count=100)
    numbers = [run.number for run in parent.get_children()]
    assert len(numbers) == 300
    assert numbers == sorted(numbers, reverse=True)
    parent.complete()


def test_get_runs_is_lazy(shared):
    runs = Experiment(shared, "lazy").get_runs()
    with pytest.raises(StopIteration):
        next(runs)


def test_runs_of_others_are_not_listed(shared):
    mine, other = Experiment(shared, "mine"), Experiment(shared, "others")
    other.start_logging(snapshot_directory=None).complete()
    assert list(mine.get_runs()) == []
