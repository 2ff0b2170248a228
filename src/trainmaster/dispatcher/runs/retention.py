"""Applies the retention rules of experiments: when runs end, and when time lets a rule remove more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.removal import Removal, Removed
from trainmaster.dispatcher.runs.retention_rules import (
    Candidate,
    Part,
    Verdict,
    decide,
    metrics_of,
    next_change,
    parse_rule,
)
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.shared.records import TERMINAL, ExperimentRecord, RetentionRule, RunQuery, RunRecord
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

_FACT = "retention"
_PAGE = 1000
# Many runs may end at once; the rule is applied once for all of them.
_PAUSE = 5.0
# Within which a rule removes no run, so that nobody loses one before having looked at it.
_GRACE = 3600.0
_NO_TAGS_OF_PEOPLE = ("_aml_system_", "mlflow.")
_OWN_TAGS = frozenset({"hyperparameters", "notify"})


@dataclass(frozen=True)
class RetentionPlan:
    """What a rule would remove, and why each other run is kept. Runs that have not ended are not listed."""

    experiment: str
    rule: str
    verdicts: tuple[Verdict, ...]


class Retention:
    """The operations on retention rules, and the task that applies them. A listener of `Watchers`."""

    def __init__(self, context: Context, removal: Removal) -> None:
        self._store = context.store
        self._removal = removal
        self._due: dict[str, float] = {}
        """Experiment to when its rule has to be applied next."""
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._rules = self._read()
        """Id of an experiment to its rule, as the store has it."""

    # Operations

    @operation("retention.set")
    def put(self, experiment: str, rule: str) -> RetentionRule:
        """Set the rule that says which runs of an experiment are kept. It is applied from now on."""
        parts = parse_rule(rule)
        record = self._require(experiment)
        kept = RetentionRule(experiment, ", ".join(map(str, parts)), time.time())
        self._write({**self._rules, record.id: {"rule": kept.rule, "set_at": kept.set_at}})
        self._wait_for(experiment, time.time() + _pause())
        return kept

    @operation("retention.list")
    def find(self, experiment: str | None = None) -> list[RetentionRule]:
        """The rules of all experiments, or of one, by name."""
        if experiment is not None:
            self._require(experiment)
        known = self._store.experiments.find(experiment, view="all")
        found = [(each.name, self._rules[each.id]) for each in known if each.id in self._rules]
        return [RetentionRule(name, kept["rule"], kept["set_at"]) for name, kept in sorted(found)]

    @operation("retention.delete")
    def delete(self, experiment: str) -> bool:
        """Remove the rule of an experiment. Return whether there was one."""
        identity = self._require(experiment).id
        is_there = identity in self._rules
        self._due.pop(experiment, None)
        self._write({each: kept for each, kept in self._rules.items() if each != identity})
        return is_there

    @operation("retention.plan")
    async def plan(self, experiment: str, rule: str | None = None, at_once: bool = False) -> RetentionPlan:
        """What the rule of an experiment, or another rule, would remove now, and why each other run is kept.

        With `at_once`, runs that have just ended are not spared.
        """
        parts = self._parts(experiment, rule)
        candidates = await asyncio.to_thread(self._list_candidates, experiment, parts)
        verdicts = decide(parts, candidates, time.time(), 0.0 if at_once else _grace())
        return RetentionPlan(experiment, ", ".join(map(str, parts)), tuple(verdicts))

    @operation("retention.apply")
    async def apply(self, experiment: str, at_once: bool = False) -> Removed:
        """Remove the runs of an experiment that its rule does not keep; with `at_once` also those that just ended."""
        parts = self._parts(experiment, None)
        candidates = await asyncio.to_thread(self._list_candidates, experiment, parts)
        now, grace = time.time(), 0.0 if at_once else _grace()
        doomed = [verdict.run_id for verdict in decide(parts, candidates, now, grace) if not verdict.is_kept]
        later = next_change(parts, candidates, now, grace)
        if later is not None:
            self._wait_for(experiment, later)
        if not doomed:
            return Removed((), 0, 0)
        log.info("the retention rule of %s removes %d runs", experiment, len(doomed))
        return await self._removal.delete(doomed)

    # Applying by itself

    def run_changed(self, record: RunRecord) -> None:
        """A run is in another state."""
        if self._rules and record.status in TERMINAL and record.parent_id is None:
            self._wait_for(record.experiment, time.time() + _pause())

    def run_reported(self, run_id: str) -> None:
        """A run may have logged something."""

    def resume(self) -> None:
        """Applies all rules once: time has passed since the last dispatcher."""
        for rule in self.find() if self._rules else ():
            self._wait_for(rule.experiment, time.time() + _pause())

    async def close(self) -> None:
        """Stops to apply rules; the next dispatcher goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wait_for(self, experiment: str, moment: float) -> None:
        self._due[experiment] = min(moment, self._due.get(experiment, moment))
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = start_task("applying retention rules", self._work)

    async def _work(self) -> None:
        while self._due:
            experiment, moment = min(self._due.items(), key=lambda each: each[1])
            if moment > time.time():
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), moment - time.time())
                continue
            del self._due[experiment]
            await self._apply_or_log(experiment)

    async def _apply_or_log(self, experiment: str) -> None:
        try:
            record = self._store.experiments.get(experiment)
            if record is not None and record.id in self._rules:
                await self.apply(experiment)
        except TrainmasterError as error:
            # For example a run that was restarted meanwhile. The next run that ends tries again.
            log.warning("the retention rule of %s could not be applied: %s", experiment, error)

    # What rules look at

    def _list_candidates(self, experiment: str, rule: tuple[Part, ...]) -> list[Candidate]:
        every = self._list_runs(experiment)
        parents = {record.id: record.parent_id for record in every if record.parent_id is not None}
        tags: dict[str, dict[str, str | None]] = {}
        values: dict[str, dict[str, tuple[float, float]]] = {}
        for record in every:
            tags.setdefault(_top(record.id, parents), {}).update(_tags_of_people(record.tags))
        for run_id, measured in self._store.retention.find_values(experiment, metrics_of(rule)).items():
            mine = values.setdefault(_top(run_id, parents), {})
            for name, (low, high) in measured.items():
                before = mine.get(name, (low, high))
                mine[name] = (min(before[0], low), max(before[1], high))
        protected = self._find_protected()
        return [
            Candidate(
                record.id,
                record.ended_at or record.created_at,
                tags[record.id],
                values.get(record.id, {}),
                protected.get(record.id, ""),
            )
            for record in every
            if record.parent_id is None and record.status in TERMINAL
        ]

    def _list_runs(self, experiment: str) -> list[RunRecord]:
        """All runs of an experiment, newest first."""
        found: list[RunRecord] = []
        before: int | None = None
        while True:
            query = RunQuery(
                experiment=experiment, include_children=True, archived=True, limit=_PAGE, before_seq=before
            )
            page = self._store.runs.find(query)
            found += page
            if len(page) < _PAGE:
                return found
            before = page[-1].seq

    def _find_protected(self) -> dict[str, str]:
        """The runs that no rule removes, and their ancestors, each with the reason."""
        removal = self._store.removal
        active = {record.id for record in self._store.runs.list_active()}
        found: dict[str, str] = {}
        for run_ids, reason in (
            (active, "a run below it has not ended"),
            (removal.find_runs_with_models(), "a model was registered from it"),
            (self._store.retention.find_served_runs(), "a service uses a model of it"),
            (removal.find_continued_runs(), "a sweep resumes from it"),
        ):
            for run_id in self._with_ancestors(run_ids):
                found.setdefault(run_id, reason)
        return found

    def _with_ancestors(self, run_ids: Iterable[str]) -> set[str]:
        found: set[str] = set()
        rest = set(run_ids)
        while rest:
            records = self._store.runs.get_many(sorted(rest))
            found |= rest
            rest = {record.parent_id for record in records if record.parent_id is not None} - found
        return found

    # Rules

    def _parts(self, experiment: str, rule: str | None) -> tuple[Part, ...]:
        kept = self._rules.get(self._require(experiment).id)
        text = rule if rule is not None else kept["rule"] if kept else None
        if text is None:
            raise UserErrorException(
                f"experiment '{experiment[:100]}' has no retention rule",
                hint=f"Set one: trainmaster retention set {experiment[:100]} 'best 5 by accuracy, newest 20, tagged'",
            )
        return parse_rule(text)

    def _require(self, experiment: str) -> ExperimentRecord:
        found = self._store.experiments.get(experiment)
        if found is None:
            raise UserErrorException(f"there is no experiment '{experiment[:100]}' in this workspace")
        return found

    def _read(self) -> dict[str, dict[str, Any]]:
        return dict(self._store.facts.get(_FACT) or {})

    def _write(self, rules: dict[str, dict[str, Any]]) -> None:
        self._store.facts.put(_FACT, rules)
        self._rules = rules


def _top(run_id: str, parents: Mapping[str, str | None]) -> str:
    """The run without a parent in this experiment that a run descends from."""
    seen = {run_id}
    while (parent := parents.get(run_id)) is not None and parent not in seen:
        run_id = parent
        seen.add(parent)
    return run_id


def _tags_of_people(tags: Mapping[str, Any]) -> dict[str, str | None]:
    """Without those that sweeps, MLflow and notifications set."""
    return {
        name: None if value is None else str(value)
        for name, value in tags.items()
        if not name.startswith(_NO_TAGS_OF_PEOPLE) and name not in _OWN_TAGS and f"_aml_system_{name}" not in tags
    }


def _grace() -> float:
    return float(os.environ.get("TRAINMASTER_RETENTION_GRACE_SECONDS", _GRACE))


def _pause() -> float:
    return min(_PAUSE, _grace())
