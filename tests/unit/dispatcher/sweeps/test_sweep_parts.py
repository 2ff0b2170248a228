"""The parts of a sweep's life that need no dispatcher."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.dispatcher.assembly import assemble
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.sweeps import Sweeps
from trainmaster.dispatcher.sweeps.log import SweepLog
from trainmaster.dispatcher.sweeps.starting import end_line, new_trial, start_line
from trainmaster.dispatcher.sweeps.trials import Trials
from trainmaster.job.errors import RunNotFoundException
from trainmaster.shared.file_events import FolderEvents
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec, dump_spec, load_spec
from trainmaster.shared.records import RunRecord, Status, TrialRecord
from trainmaster.shared.serialization import to_plain
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.planning import Start
from trainmaster.tuning.spec import SweepSpec, dump_sweep
from trainmaster.tuning.trial import Decision
from trainmaster.tuning.view import Counts, summary_of

SPEC = SweepSpec(
    JobSpec("/code", "local", script="train.py", arguments=("--epochs", "3"), environment_variables={"A": "1"}),
    {"--lr": ["uniform", [0, 1]]},
    "score",
    PrimaryMetricGoal.MAXIMIZE,
    10,
    2,
)
SWEEP = RunRecord("s", "exp", Status.RUNNING, 1.0, type="hyperdrive", target="local", submitted_by="me")


def test_a_trial_is_a_child_with_its_own_arguments(tmp_path: Path) -> None:
    found = new_trial(
        SWEEP, SPEC, to_plain(SPEC.job), Start(3, {"--lr": 0.5, "b": [1, 2]}), WorkspaceFolder(tmp_path), 2.0
    )
    assert (found.run.id, found.run.parent_id, found.run.target) == ("s_3", "s", "local")
    assert json.loads(found.run.spec) == json.loads(dump_spec(found.job))
    assert load_spec(found.run.spec) == found.job
    assert found.job.arguments == ("--epochs", "3", "--lr", "0.5", "--b", "1", "2")


def test_one_that_goes_on_is_told_from_where(tmp_path: Path) -> None:
    start = Start(0, {"--lr": 0.5}, continues="old_2")
    job = new_trial(SWEEP, SPEC, to_plain(SPEC.job), start, WorkspaceFolder(tmp_path), 2.0).job
    place = str(tmp_path / "runs" / "old_2" / "files" / "outputs")
    assert job.arguments[-2:] == ("--resume-from", place)
    assert job.environment_variables == {"A": "1", "MODEL_LOCATION": place}


def test_lines_of_the_log() -> None:
    trial = TrialRecord(3, "s_3", {"--lr": 0.5}, "old_1", status=Status.FAILED, error="it fell\nover")
    assert start_line(trial) == "run_3 starts: --lr 0.5 (goes on with old_1)"
    assert end_line(trial, None, "score") == "run_3 is Failed: it fell"


def test_the_log_says_what_is_missing_once(tmp_path: Path) -> None:
    place = tmp_path / "logs" / "hyperdrive.txt"
    log = SweepLog(place)
    log.say("one")
    log.close()
    with open(place, "a") as file:
        file.write("2026-01-01 00:00:00 tor")
    again = SweepLog(place)
    again.say_what_is_missing(["one", "two"])
    again.say_what_is_missing(["one", "two"])
    again.close()
    assert [line[20:] for line in place.read_text().splitlines()] == ["one", "tor", "two"]


def test_folder_events_tell_which(tmp_path: Path) -> None:
    events: FolderEvents[str] = FolderEvents()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        events.watch(tmp_path / name, name)
    assert events.take() == set()
    (tmp_path / "b" / "file").write_text("x")
    assert events.take() == {"b"}
    events.forget("b")
    (tmp_path / "b" / "file").write_text("y")
    (tmp_path / "a" / "file").write_text("y")
    assert events.take() == {"a"}
    events.close()
    assert not events.works


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "store.db")


def _with_trials(store: Store, count: int, spec: str = "{}") -> list[RunRecord]:
    store.sweeps.add(SWEEP, spec)
    new = [
        (
            TrialRecord(number, f"s_{number}", {"--lr": number}),
            RunRecord(f"s_{number}", "exp", Status.RUNNING, 2.0, parent_id="s", spec="{}"),
        )
        for number in range(count)
    ]
    return store.sweeps.add_trials("s", new)


def _log(store: Store, run_id: str, start: int, *values: object) -> None:
    records = [{"k": "metric", "n": "score", "v": value, "t": 1.0} for value in values]
    assert store.journals.ingest(run_id, "0-1.jsonl", start, start + len(values), records)


def test_trials_read_what_is_new_and_keep_what_is_not(store: Store) -> None:
    _with_trials(store, 3)
    trials = Trials(store, "s", "score")
    before = trials.ordered
    _log(store, "s_1", 0, 1.0, "no number", 2)
    assert trials.note_report("s_1") and not trials.note_report("elsewhere")
    trials.read_reports()
    assert [trial.values for trial in trials.ordered] == [(), (1.0, 2.0), ()]
    assert trials.ordered[0] is before[0] and trials.ordered[2] is before[2]
    _log(store, "s_1", 3, float("nan"), 4)
    trials.note_report("s_1")
    trials.read_reports()
    assert len(trials.ordered[1].values) == 4 and trials.ordered[1].values[3] == 4.0
    assert [trial.values[:2] for trial in Trials(store, "s", "score").ordered] == [(), (1.0, 2.0), ()]


def test_a_decision_and_the_cut_are_kept_together(store: Store) -> None:
    _with_trials(store, 2)
    trials = Trials(store, "s", "score")
    assert store.runs.move("s_1", Status.COMPLETED, at=3.0) is not None
    decided = [(0, 4, "why"), (1, 4, "too late")]
    cut = store.sweeps.judge_trials("s", decided, at=5.0)
    assert [(run.id, run.status) for run in cut] == [("s_0", Status.CANCEL_REQUESTED)]
    trials.note_decisions([Decision(0, 4, True, "why"), Decision(1, 4, True, "too late")], ["s_0"])
    kept = {trial.number: (trial.judged, trial.cut) for trial in store.sweeps.list_trials("s")}
    assert kept == {0: (4, "why"), 1: (4, "")} == {each.number: (each.judged, each.cut) for each in trials.records}


def test_views_have_what_changed_only(store: Store) -> None:
    _with_trials(store, 3)
    trials = Trials(store, "s", "score")
    version = trials.version
    assert len(trials.views(PrimaryMetricGoal.MAXIMIZE)) == 3
    assert trials.views(PrimaryMetricGoal.MAXIMIZE, version) == []
    _log(store, "s_2", 0, 5.0)
    trials.note_report("s_2")
    trials.read_reports()
    (changed,) = trials.views(PrimaryMetricGoal.MAXIMIZE, version)
    assert (changed.number, changed.best, changed.reports) == (2, 5.0, 1)


def test_names_are_told_of_a_trial_that_completed_without_the_metric(store: Store) -> None:
    runs = _with_trials(store, 1)
    _log(store, "s_0", 0, 5.0)
    trials = Trials(store, "s", "accuracy")
    ended = store.runs.move(runs[0].id, Status.COMPLETED, at=3.0)
    assert ended is not None
    trials.update_run(ended)
    assert trials.ordered[0].metric_names == ("score",) and trials.ordered[0].has_ended


def _operations(store: Store) -> Sweeps:
    dispatcher = assemble(WorkspaceFolder(Path("unused")), store)

    async def accept(record: RunRecord, sources: object) -> RunRecord:
        return record

    return Sweeps(dispatcher.context, dispatcher.runs, dispatcher.updates, accept)


@pytest.mark.parametrize("goal", list(PrimaryMetricGoal))
def test_a_list_of_sweeps_reads_counts_and_the_best_trial_alone(
    store: Store, goal: PrimaryMetricGoal, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(SPEC, goal=goal)
    _with_trials(store, 9, dump_sweep(spec))
    for number, values in enumerate(([1, 7.0], [float("nan"), 3, "text"], [True, 9], [9], ["text"], [float("nan")])):
        _log(store, f"s_{number}", 0, *values)
    _log(store, "s_7", 0, 1)
    store.sweeps.judge_trials("s", [(2, 2, "behind"), (3, 1, "")], at=5.0)
    ends = (Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.COMPLETED, Status.CANCELED, Status.COMPLETED)
    for number, status in enumerate(ends):
        assert store.runs.move(f"s_{number}", status, at=6.0) is not None
    sweeps = _operations(store)
    expected = summary_of(asyncio.run(sweeps.view("s")), 10.0)
    assert expected.best is not None and expected.best.number == (2 if goal == PrimaryMetricGoal.MAXIMIZE else 0)
    assert expected.counts == Counts(started=9, going=3, completed=3, cut=1, canceled=1, failed=1)
    for costly in ("list_trials", "read_numbers_of_trials"):
        monkeypatch.setattr(store.sweeps, costly, None)
    monkeypatch.setattr(store, "metrics", None)
    (found,) = asyncio.run(sweeps.summaries(["s"]))
    assert (found.counts, found.best) == (expected.counts, expected.best)
    assert found.view == expected.view


def test_a_sweep_in_a_list_without_values(store: Store) -> None:
    _with_trials(store, 0, dump_sweep(SPEC))
    sweeps = _operations(store)
    (found,) = asyncio.run(sweeps.summaries(["s"]))
    assert (found.counts, found.best, found.seconds_left) == (Counts(), None, None)
    with pytest.raises(RunNotFoundException):
        asyncio.run(sweeps.summaries(["none"]))


def test_the_end_of_a_run_is_one_step(store: Store) -> None:
    _with_trials(store, 1)
    batch = ("0-1.jsonl", 0, 2, [{"k": "metric", "n": "score", "v": value, "t": 1.0} for value in (1, 2)])
    ended = store.journals.finish_run("s_0", Status.COMPLETED, at=9.0, batches=[batch], warnings=["w"], started_at=4.0)
    assert ended is not None
    assert (ended.status, ended.started_at, ended.ended_at, ended.warnings) == (Status.COMPLETED, 4.0, 9.0, ("w",))
    assert store.sweeps.read_numbers("s_0", "score") == (2, (1.0, 2.0))
    assert store.journals.finish_run("s_0", Status.FAILED, at=9.0) is None


def test_an_end_that_was_overtaken_changes_nothing(store: Store) -> None:
    _with_trials(store, 1)
    _log(store, "s_0", 0, 7.0)
    batch = ("0-1.jsonl", 0, 2, [{"k": "metric", "n": "score", "v": 1, "t": 1.0}])
    assert store.journals.finish_run("s_0", Status.COMPLETED, at=9.0, batches=[batch]) is None
    record = store.runs.get("s_0")
    assert record is not None and record.status is Status.RUNNING
    assert store.sweeps.read_numbers("s_0", "score") == (1, (7.0,))
