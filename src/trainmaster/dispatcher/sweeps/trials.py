"""The trials of a sweep in memory, in the form that planning needs. Only what has changed is read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import TERMINAL, RunRecord, Status, TrialRecord
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.history import History
from trainmaster.tuning.trial import Decision, Trial
from trainmaster.tuning.view import TrialView, trial_view


@dataclass
class _Entry:
    record: TrialRecord
    trial: Trial
    read: int = 0
    """How many points of the primary metric were read; the numbers among them are the trial's values."""
    version: int = 0
    """The version of the sweep in which it last changed."""
    view: TrialView | None = None
    """Its view, made when a client asks and kept until the trial changes."""


class Trials:
    """The trials of a sweep, as the store has them."""

    def __init__(self, store: Store, sweep_id: str, metric: str) -> None:
        self._store = store
        self._metric = metric
        self._entries: dict[int, _Entry] = {}
        self._numbers: dict[str, int] = {}
        """Run id to number."""
        self._unread: set[int] = set()
        self.history = History()
        self.version = 0
        """Counts the changes of all trials."""
        found = store.sweeps.read_numbers_of_trials(sweep_id, metric)
        for record in store.sweeps.list_trials(sweep_id):
            self._add(record, *found.get(record.number, (0, ())))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def ordered(self) -> tuple[Trial, ...]:
        """All trials by number; unchanged trials are the same objects as before."""
        return self.history.ordered

    @property
    def records(self) -> list[TrialRecord]:
        """The records of all trials."""
        return [entry.record for entry in self._entries.values()]

    def record(self, number: int) -> TrialRecord:
        """The record of one trial."""
        return self._entries[number].record

    def trial(self, number: int) -> Trial:
        """One trial, as planning sees it."""
        return self._entries[number].trial

    def has(self, run_id: str) -> bool:
        """Whether this run is one of the trials."""
        return run_id in self._numbers

    def going(self) -> list[TrialRecord]:
        """The trials that have not ended."""
        return [self._entries[number].record for number in sorted(self.history.going)]

    def add(self, records: Iterable[TrialRecord]) -> None:
        """Adds new trials, which have not reported anything."""
        for record in records:
            self._add(record, 0, ())

    def _add(self, record: TrialRecord, read: int, values: tuple[float, ...]) -> None:
        trial = _make_trial(record, values)
        trial = replace(trial, metric_names=self._names(record, trial))
        self._entries[record.number] = _Entry(record, trial, read)
        self._numbers[record.run_id] = record.number
        self._note(record.number)

    def update_run(self, run: RunRecord) -> TrialRecord | None:
        """Takes over the state of the run of a trial; None if it is not one of the trials."""
        number = self._numbers.get(run.id)
        if number is None:
            return None
        entry = self._entries[number]
        entry.record = replace(
            entry.record,
            status=run.status,
            started_at=run.started_at,
            ended_at=run.ended_at,
            error=run.error.message if run.error else "",
        )
        if run.status in TERMINAL:
            # All metrics are in the store before the terminal state.
            self._read(number)
        entry.trial = replace(
            entry.trial,
            status=run.status,
            ended_at=run.ended_at,
            metric_names=self._names(entry.record, entry.trial),
            error=headline(entry.record.error),
        )
        self._note(number)
        return entry.record

    def note_report(self, run_id: str) -> bool:
        """Notes that a run may have reported something; false if it is not one of the trials."""
        number = self._numbers.get(run_id)
        if number is None:
            return False
        self._unread.add(number)
        return True

    def read_reports(self) -> None:
        """Reads the new metrics of the trials that may have reported something."""
        for number in sorted(self._unread):
            self._read(number)
        self._unread.clear()

    def _read(self, number: int) -> None:
        entry = self._entries[number]
        read, values = self._store.sweeps.read_numbers(entry.record.run_id, self._metric, entry.read)
        entry.read = read
        self._unread.discard(number)
        if values:
            entry.trial = replace(entry.trial, values=entry.trial.values + values)
            self._note(number)

    def note_decisions(self, decisions: Sequence[Decision], cut: Iterable[str]) -> None:
        """Notes the decisions of the policy, which ends the runs in `cut`."""
        ended = set(cut)
        for decision in decisions:
            entry = self._entries[decision.number]
            words = decision.words if decision.cut and entry.record.run_id in ended else entry.record.cut
            entry.record = replace(entry.record, judged=decision.interval, cut=words)
            entry.trial = replace(entry.trial, judged=decision.interval)
            self._note(decision.number)

    def views(self, goal: PrimaryMetricGoal, since: int = -1) -> list[TrialView]:
        """The views of the trials that changed after version `since`."""
        changed = [entry for entry in self._entries.values() if entry.version > since]
        for entry in changed:
            entry.view = entry.view or _view(goal, entry)
        return [entry.view for entry in changed if entry.view is not None]

    def _note(self, number: int) -> None:
        self.version += 1
        entry = self._entries[number]
        entry.version = self.version
        entry.view = None
        self.history.put(entry.trial)

    def _names(self, record: TrialRecord, trial: Trial) -> tuple[str, ...]:
        """The metrics that a trial has logged, read only if it ended without the primary metric."""
        if trial.has_value or record.status is not Status.COMPLETED:
            return ()
        return tuple(summary.name for summary in self._store.metrics.summarize(record.run_id))


def view_of(goal: PrimaryMetricGoal, record: TrialRecord, values: tuple[float, ...]) -> TrialView:
    """The view of a trial that has reported `values`."""
    return _view(goal, _Entry(record, _make_trial(record, values)))


def _view(goal: PrimaryMetricGoal, entry: _Entry) -> TrialView:
    record = entry.record
    cut = Decision(record.number, record.judged, True, record.cut) if record.cut else None
    return trial_view(goal, entry.trial, record.run_id, record.started_at, cut)


def _make_trial(record: TrialRecord, values: tuple[float, ...]) -> Trial:
    return Trial(
        record.number,
        record.parameters,
        record.status,
        values,
        record.judged,
        record.ended_at,
        error=headline(record.error),
    )


def headline(error: str) -> str:
    """The first line of an error.

    >>> headline("ValueError: no luck\\nrank 0 on node 0 ended with exit code 1\\n")
    'ValueError: no luck'
    """
    return next((line.strip() for line in error.splitlines() if line.strip()), "")
