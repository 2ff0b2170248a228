"""What every store has to do, whatever its database is.

    from trainmaster.testing import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def place(self):
            return "postgresql://..."

`place` is where `Store.create` makes a new store: the path of a file that does not exist, or the URL of an empty
database.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import RunNotFoundException, UserErrorException, WorkspaceException
from trainmaster.shared.job_spec import DatasetDefinition, DataSource
from trainmaster.shared.records import (
    SUCCESSORS,
    TERMINAL,
    DatasetRecord,
    DatastoreRecord,
    ModelRecord,
    RunError,
    RunQuery,
    RunRecord,
    Status,
    TargetRecord,
    TrialRecord,
)

_THREADS = 8


class StoreConformance:
    """Inherit this and give the fixture `place`."""

    @pytest.fixture
    def store(self, place: Path | str) -> Iterator[Store]:
        """A new store."""
        store = Store.create(place)
        yield store
        store.close()

    def test_create_and_open(self, place: Path | str) -> None:
        """A store is created once; after closing, everything is there."""
        with pytest.raises(WorkspaceException):
            Store.open(place)
        store = Store.create(place)
        kept = store.runs.add(_run("a", tags={"x": 1}, spec="{}"))
        store.journals.ingest("a", "0-1-a.jsonl", 0, 9, [_metric("loss", 0.5)])
        store.close()
        with pytest.raises(WorkspaceException):
            Store.create(place)
        again = Store.open(place)
        assert again.runs.get("a") == kept
        assert again.metrics.read("a")[0].values == (0.5,)
        assert again.journals.get_offsets("a") == {"0-1-a.jsonl": 9}
        again.close()

    def test_add_runs(self, store: Store) -> None:
        """Runs are numbered by experiment; a run that is there stays; a parent must be there."""
        first, second = store.runs.add(_run("a")), store.runs.add(_run("b", experiment="other"))
        third = store.runs.add(_run("c"))
        assert [run.number for run in (first, second, third)] == [1, 1, 2]
        assert first.seq < second.seq < third.seq
        assert store.runs.add(_run("a", display_name="again")) == first
        with pytest.raises(RunNotFoundException):
            store.runs.add_many([_run("d"), _run("e", parent_id="nobody")])
        assert store.runs.get_many(["c", "d", "a"]) == [third, first]
        with pytest.raises(RunNotFoundException):
            store.runs.update("d", display_name="x")

    def test_add_runs_from_threads(self, store: Store) -> None:
        """No number is given twice."""
        _together(lambda n: store.runs.add_many([_run(f"{n}-{each}") for each in range(5)]))
        runs = store.runs.find(RunQuery(experiment="exp"))
        assert sorted(run.number for run in runs) == list(range(1, 5 * _THREADS + 1))

    @pytest.mark.parametrize("before", Status)
    def test_moves(self, store: Store, before: Status) -> None:
        """A run moves to the states that may follow its own, and to no other."""
        store.runs.add_many([_run(to, status=before) for to in Status])
        for to in Status:
            was, moved = store.runs.get(to), store.runs.move(to, to, at=200.0)
            assert (moved is not None) == (to in SUCCESSORS[before])
            assert store.runs.get(to) == (moved or was)
            assert moved is None or (moved.ended_at == 200.0) == (to in TERMINAL)

    def test_moves_from_threads(self, store: Store) -> None:
        """Of those who end a run at once, one does."""
        store.runs.add(_run("a", status=Status.RUNNING))
        ends = (Status.COMPLETED, Status.FAILED, Status.CANCELED)
        moved = _together(lambda n: store.runs.move("a", ends[n % 3], at=float(n), error=RunError("E", str(n))))
        (winner,) = [run for run in moved if run is not None]
        assert store.runs.get("a") == winner and winner.error is not None

    def test_find_runs(self, store: Store) -> None:
        """Runs are found by what is known of them, newest first, a page at a time."""
        store.runs.add(_run("a", tags={"stage": "dev", "n": 5, "bare": None}, properties={"p": "1"}))
        store.runs.add(_run("b", experiment="other", status=Status.COMPLETED, tags={"stage": "prod"}))
        store.runs.add(_run("a1", parent_id="a", tags={"stage": "dev"}))
        store.runs.add(_run("a11", parent_id="a1", target="gpu", status=Status.FAILED))
        queries: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["b", "a"]),
            ({"include_children": True}, ["a11", "a1", "b", "a"]),
            ({"experiment": "other"}, ["b"]),
            ({"parent_id": "a"}, ["a1"]),
            ({"parent_id": "a", "recursive": True}, ["a11", "a1"]),
            ({"target": "gpu", "include_children": True}, ["a11"]),
            ({"statuses": ("Queued",), "include_children": True}, ["a1", "a"]),
            ({"tags": {"stage": "dev", "bare": None}}, ["a"]),
            ({"tags": {"n": 5}, "properties": {"p": "1"}}, ["a"]),
            ({"tags": {"n": "5"}}, ["a"]),
            ({"limit": 1}, ["b"]),
        ]
        for query, expected in queries:
            assert [run.id for run in store.runs.find(RunQuery(**query))] == expected, query
        (newest,) = store.runs.find(RunQuery(limit=1))
        assert [run.id for run in store.runs.find(RunQuery(before_seq=newest.seq))] == ["a"]
        assert [run.id for run in store.runs.list_active()] == ["a", "a1"]
        assert store.runs.has_active_children("a") and not store.runs.has_active_children("a1")

    def test_labels(self, store: Store) -> None:
        """Tags change, properties are written once, texts that no database takes are escaped."""
        store.runs.add(_run("a"))
        store.runs.set_tags("a", {"x": 1, "long": "y" * 10_000, "nul": "\0", "half": "\ud800"})
        store.runs.set_tags("a", {"x": [1, None]})
        store.runs.remove_tags("a", ["long", "unknown"])
        assert [run.id for run in store.runs.find(RunQuery(tags={"x": [1, None]}))] == ["a"]
        assert store.runs.find(RunQuery(tags={"x": 1})) == store.runs.find(RunQuery(tags={"long": None})) == []
        store.runs.add_properties("a", {"p": "1"})
        with pytest.raises(UserErrorException):
            store.runs.add_properties("a", {"q": "2", "p": "2"})
        found = store.runs.get("a")
        assert found is not None and set(found.tags) == {"x", "nul", "half"} and found.properties == {"p": "1"}

    def test_journals(self, store: Store) -> None:
        """Values come back with their types; records are applied once, and bad ones are skipped and counted."""
        store.runs.add(_run("a", status=Status.RUNNING))
        values = [0.5, 3, 2**60, -(10**400), True, "text\0", None, math.inf, [1, {"a": None}]]
        records = [_metric("m", value) for value in values]
        assert store.journals.ingest("a", "2-1-a.jsonl", 0, 10, [*records, {"k": "nonsense"}, 7])  # type: ignore[list-item]
        assert not store.journals.ingest("a", "2-1-a.jsonl", 0, 10, records)
        (series,) = store.metrics.read("a")
        assert series.values == (*values[:5], "text\\x00", *values[6:]) and set(series.ranks) == {2}
        (summary,) = store.metrics.summarize("a")
        assert (summary.count, summary.last, summary.maximum) == (9, values[-1], math.inf)
        found = store.runs.get("a")
        assert found is not None and len(found.warnings) == 1 and "2 records" in found.warnings[0]

    def test_series(self, store: Store) -> None:
        """A long series is thinned to its extremes; each rank can be read for itself."""
        store.runs.add(_run("a", status=Status.RUNNING))
        for rank in (0, 1):
            values = [(n * 7919) % 1009 + rank / 2 for n in range(500)]
            store.journals.ingest("a", f"{rank}-1-a.jsonl", 0, 1, [{"k": "list", "n": "m", "v": values, "t": 1.0}])
        (whole,), (thin,) = store.metrics.read("a", "m"), store.metrics.read("a", "m", max_points=20)
        assert len(whole.values) == 1000 and len(thin.values) <= 20
        assert {min(whole.values), max(whole.values), whole.values[0], whole.values[-1]} <= set(thin.values)
        assert [whole.values[index] for index in thin.index] == list(thin.values)
        by_rank = store.metrics.read_by_rank("a", "m")
        summaries = [(each.rank, each.summary.count, each.summary.minimum) for each in by_rank]
        assert summaries == [(0, 500, 0.0), (1, 500, 0.5)]

    def test_finish_run(self, store: Store) -> None:
        """The last records, the warnings and the end of a run are one step."""
        store.runs.add(_run("a", status=Status.RUNNING))
        batch = ("0-1-a.jsonl", 5, 6, [_metric("m", 1)])
        assert store.journals.finish_run("a", Status.COMPLETED, at=200.0, batches=[batch], warnings=["w"]) is None
        found = store.runs.get("a")
        assert found is not None and found.status is Status.RUNNING and found.warnings == ()
        batch = ("0-1-a.jsonl", 0, 6, [_metric("m", 1)])
        ended = store.journals.finish_run("a", Status.COMPLETED, at=200.0, batches=[batch], warnings=["w"])
        assert ended is not None and (ended.status, ended.warnings, ended.ended_at) == (Status.COMPLETED, ("w",), 200.0)
        assert store.metrics.read("a")[0].values == (1,)
        assert store.journals.finish_run("a", Status.FAILED, at=300.0) is None

    def test_sweeps(self, store: Store) -> None:
        """Trials are added, judged and counted; the best of them is found."""
        store.sweeps.add(_run("s", status=Status.RUNNING), "{}")
        trials = [
            (TrialRecord(n, f"s_{n}", {"lr": n}), _run(f"s_{n}", Status.RUNNING, parent_id="s")) for n in range(4)
        ]
        store.sweeps.add_trials("s", trials)
        for n in range(3):
            store.journals.ingest(f"s_{n}", "0-1-a.jsonl", 0, 1, [_metric("score", v) for v in (n, "text", n / 2)])
        store.runs.move("s_3", Status.FAILED, at=3.0)
        cut = store.sweeps.judge_trials("s", [(0, 1, ""), (1, 2, "behind"), (3, 1, "behind")], at=4.0)
        assert [(run.id, run.status) for run in cut] == [("s_1", Status.CANCEL_REQUESTED)]
        assert store.sweeps.count_trials("s") == {
            (Status.RUNNING, False): 2,
            (Status.CANCEL_REQUESTED, True): 1,
            (Status.FAILED, False): 1,
        }
        assert [(trial.judged, trial.cut) for trial in store.sweeps.list_trials("s")] == [
            (1, ""),
            (2, "behind"),
            (0, ""),
            (1, ""),
        ]
        largest, smallest = (store.sweeps.find_best_trial("s", "score", largest=each) for each in (True, False))
        assert largest is not None and smallest is not None and (largest.number, smallest.number) == (2, 0)
        assert store.sweeps.read_numbers("s_1", "score", 1) == (3, (0.5,))
        assert store.sweeps.read_numbers_of_trials("s", "score")[2] == (3, (2.0, 1.0))
        assert store.sweeps.get_parameters("s_2") == {"lr": 2} and store.sweeps.get_parameters("s") is None
        store.sweeps.set_ending("s", Status.CANCELED, "enough")
        sweep = store.sweeps.get("s")
        assert sweep is not None and (sweep.ending_status, sweep.ending_reason) == ("Canceled", "enough")

    def test_versions(self, store: Store) -> None:
        """Each registration is the next version of its name; a repeated one is the same."""
        definition = DatasetDefinition("file", (DataSource("/data"),))
        first = store.datasets.register(DatasetRecord("id1", definition, "d"))
        assert store.datasets.register(DatasetRecord("id1", definition, "d")) == first
        assert store.datasets.register(DatasetRecord("id2", definition, "d")).version == 2
        assert [each.id for each in store.datasets.list_newest()] == ["id2"]
        assert store.environments.register("e", {"a": 1}, at=1.0).version == 1
        assert store.environments.register("e", {"a": 1}, at=2.0).version == 1
        newest = store.environments.register("e", {"a": 2}, at=3.0)
        assert store.environments.add_labels("e", 1, ["good"]).labels == ("good",)
        assert store.environments.add_labels("e", 2, ["good"]).version == 2
        assert store.environments.get("e", label="good") == store.environments.get("e")
        assert [each.version for each in store.environments.list_newest()] == [newest.version] == [2]

    def test_models(self, store: Store) -> None:
        """No version is given twice, not even after a deletion."""
        registered = _together(lambda n: store.models.register(_model(str(n))))
        assert sorted(model.version for model in registered) == list(range(1, _THREADS + 1))
        assert store.models.register(_model("0")).version == registered[0].version
        store.models.delete("m", _THREADS)
        assert store.models.get("m", _THREADS) is None
        assert store.models.register(_model("new")).version == _THREADS + 1
        newest = store.models.find(name="m")[0]
        store.models.relabel(newest, {"a": "1", "b": "2"}, [], {"p": "1"}, {"f": [1]})
        store.models.relabel(newest, {"c": "3"}, ["a"], {"p": "1"}, {})
        with pytest.raises(UserErrorException):
            store.models.relabel(newest, {"d": "4"}, [], {"p": "2"}, {})
        found = store.models.get("m", newest.version)
        assert found is not None and (found.tags, found.facts) == ({"b": "2", "c": "3"}, {"f": [1]})

    def test_places(self, store: Store) -> None:
        """Targets, datastores and facts are replaced by name; one datastore is the default."""
        store.targets.put(TargetRecord("t", "local", 1, 2, 0, {"a": None}))
        store.targets.put(TargetRecord("t", "slurm", 4, 2, 1))
        assert [target.nodes for target in store.targets.list_all()] == [4]
        store.datastores.put(DatastoreRecord("a", "file:///a", is_default=True))
        store.datastores.put(DatastoreRecord("b", "file:///b", {"key": "x"}, is_default=True))
        assert [each.is_default for each in store.datastores.list_all()] == [False, True]
        store.datastores.set_default("a")
        assert [each.is_default for each in store.datastores.list_all()] == [True, False]
        assert store.datastores.delete("b") and not store.datastores.delete("b")
        store.facts.put("key", {"a": [1, None]})
        store.facts.put("key", {"a": [2]})
        assert store.facts.get("key") == {"a": [2]} and store.facts.get("other") is None

    def test_experiments(self, store: Store) -> None:
        """Experiments are created once, archived, and deleted when they have no runs."""
        experiment = store.experiments.ensure("e", at=1.0)
        assert store.experiments.ensure("e", at=2.0) == experiment
        store.experiments.update("e", tags={"a": 1}, archived_at=3.0)
        assert store.experiments.find() == []
        assert [each.tags for each in store.experiments.find(view="archived", tags={"a": None})] == [{"a": 1}]
        store.runs.add(_run("a", experiment="e"))
        with pytest.raises(UserErrorException):
            store.experiments.delete("e")

    def test_removal(self, store: Store) -> None:
        """A run is deleted with its descendants and everything it logged."""
        store.runs.add(_run("a", snapshot_id="1" * 64))
        store.runs.add(_run("a1", parent_id="a", tags={"x": 1}, spec="{}"))
        store.runs.add(_run("b"))
        store.journals.ingest("a1", "0-1-a.jsonl", 0, 1, [_metric("m", n) for n in range(200)])
        family = store.removal.list_family("a")
        assert [run_id for run_id, _ in family] == ["a", "a1"]
        assert store.removal.find_needed_snapshots() == {"1" * 64}
        while store.removal.delete_points(["a", "a1"], most=64):
            pass
        store.removal.delete_runs(["a1"])
        store.removal.delete_runs(["a"])
        assert [run.id for run in store.runs.find(RunQuery(include_children=True))] == ["b"]
        assert store.removal.find_needed_snapshots() == set()

    def test_transactions(self, store: Store) -> None:
        """A failing transaction changes nothing; a read sees one state; a read cannot write."""
        with pytest.raises(RuntimeError, match="on purpose"), store._database.write():
            store.runs.add(_run("a"))
            store.facts.put("key", 1)
            raise RuntimeError("on purpose")
        assert store.runs.get("a") is None and store.facts.get("key") is None
        with store._database.read():
            assert store.runs.get("a") is None
            writer = threading.Thread(target=store.runs.add, args=(_run("a"),))
            writer.start()
            writer.join()
            assert store.runs.get("a") is None
            with pytest.raises(RuntimeError):
                store.facts.put("key", 1)
        assert store.runs.get("a") is not None and store.facts.get("key") is None


def _run(run_id: str, status: Status = Status.QUEUED, experiment: str = "exp", **fields: Any) -> RunRecord:
    return RunRecord(run_id, experiment, status, 100.0, **fields)


def _metric(name: str, value: Any) -> dict[str, Any]:
    return {"k": "metric", "n": name, "v": value, "t": 1.0}


def _model(key: str) -> ModelRecord:
    return ModelRecord("m", key, "0" * 64, "model.bin")


def _together(work: Callable[[int], Any]) -> list[Any]:
    """The results of `work` in several threads at once, by their numbers."""
    results: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: work(n)})) for n in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[n] for n in range(_THREADS)]
