"""What a sweep does next: a pure function of its description, its trials and the time.

The dispatcher stores the parameters of a trial when it starts it, the interval of a decision together with its effect,
and the ending before it acts on it. So a sweep whose dispatcher was killed continues as if nothing had happened: the
same state gives the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trainmaster.shared.records import Status
from trainmaster.tuning.decisions import decide
from trainmaster.tuning.history import History
from trainmaster.tuning.samplers import Observation, next_parameters
from trainmaster.tuning.space import Parameters
from trainmaster.tuning.spec import SweepSpec
from trainmaster.tuning.trial import Decision, Trial

_SECONDS = 60


@dataclass(frozen=True)
class Ending:
    """How a sweep ends, and why."""

    status: Status
    reason: str


@dataclass(frozen=True)
class SweepState:
    """A sweep so far."""

    started_at: float
    history: History = field(default_factory=History)
    cancel_requested: bool = False
    ending: Ending | None = None
    """The ending that was planned and stored before."""


@dataclass(frozen=True)
class Start:
    """Start trial `number` with these parameters."""

    number: int
    parameters: Parameters
    continues: str = ""
    """The run of an earlier sweep that it continues."""


@dataclass(frozen=True)
class Cancel:
    """Cancel trial `number`."""

    number: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """What to do now, in this order."""

    warnings: tuple[str, ...] = ()
    """Warnings about the sweep so far; each is stored once."""
    decisions: tuple[Decision, ...] = ()
    """Decisions of the policy, which are stored with the trials and written to the sweep's log."""
    ending: Ending | None = None
    """Set when the sweep starts no more trials. It is stored before trials are cancelled."""
    cancels: tuple[Cancel, ...] = ()
    starts: tuple[Start, ...] = ()
    finish: Ending | None = None
    """Set when the sweep and all its trials have ended."""


def plan(spec: SweepSpec, state: SweepState, now: float) -> Plan:
    """What to do next; an empty plan if the sweep has to wait for trials."""
    history = state.history
    warnings = tuple(_missing_metric(spec, history.first_completed))
    ending = _ending(spec, state, now)
    if ending is not None:
        return _wind_up(ending, history, warnings)
    decisions = () if spec.policy.kind == "none" else tuple(decide(spec.policy, spec.goal, history.ordered))
    starts = tuple(_starts(spec, history))
    if not starts and not history.going:
        ending = _result(spec, history)
        return Plan(warnings, ending=ending, finish=ending)
    cancels = tuple(Cancel(each.number, each.words) for each in decisions if each.cut)
    return Plan(warnings, decisions, cancels=cancels, starts=starts)


def deadline(spec: SweepSpec, started_at: float) -> float:
    """When the sweep's time is up."""
    return started_at + spec.max_duration_minutes * _SECONDS


def _wind_up(ending: Ending, history: History, warnings: tuple[str, ...]) -> Plan:
    going = [history.going[number] for number in sorted(history.going)]
    cancels = tuple(Cancel(trial.number, ending.reason) for trial in going if trial.can_be_cut)
    return Plan(warnings, ending=ending, cancels=cancels, finish=None if going else ending)


def _ending(spec: SweepSpec, state: SweepState, now: float) -> Ending | None:
    if state.cancel_requested:
        return Ending(Status.CANCELED, "the sweep was cancelled")
    if state.ending is not None:
        return state.ending
    return _failures(spec, state.history) or _never_logged(spec, state.history) or _time_up(spec, state, now)


def _failures(spec: SweepSpec, history: History) -> Ending | None:
    if history.failed < spec.max_failures_in_a_row:
        return None
    row: list[Trial] = []
    for trial in history.in_order_of_end:
        if trial.status is Status.FAILED:
            row.append(trial)
        elif trial.status is Status.COMPLETED or trial.values:
            row = []
        if len(row) >= spec.max_failures_in_a_row:
            return Ending(Status.FAILED, f"{len(row)} trials in a row failed; {_last_failure(row)}")
    return None


def _never_logged(spec: SweepSpec, history: History) -> Ending | None:
    if history.has_reports or history.completed < spec.max_failures_in_a_row:
        return None
    completed = [trial for trial in history.ordered if trial.status is Status.COMPLETED]
    return Ending(Status.FAILED, f"{len(completed)} trials completed, and none logged {_instead(spec, completed)}")


def _time_up(spec: SweepSpec, state: SweepState, now: float) -> Ending | None:
    history = state.history
    is_complete = len(history) >= spec.max_total_runs and not history.going
    if now < deadline(spec, state.started_at) or is_complete:
        return None
    over = f"max_duration_minutes={spec.max_duration_minutes} have passed"
    if history.has_reports:
        return Ending(Status.COMPLETED, over)
    return Ending(Status.FAILED, f"{over}, and no trial has logged {_instead(spec, history.ordered)}")


def _result(spec: SweepSpec, history: History) -> Ending:
    """How a sweep ends after its last trial."""
    trials = history.ordered
    count = len(trials)
    completed = [trial for trial in trials if trial.status == Status.COMPLETED]
    failed = [trial for trial in trials if trial.status == Status.FAILED]
    if history.has_reports and len(failed) < count:
        return Ending(Status.COMPLETED, f"all {count} trials have ended")
    if completed:
        return Ending(Status.FAILED, f"all {count} trials have ended, and none logged {_instead(spec, completed)}")
    if failed:
        row = [trial for trial in history.in_order_of_end if trial.status is Status.FAILED]
        return Ending(Status.FAILED, f"{len(failed)} of {count} trials failed, none completed; {_last_failure(row)}")
    return Ending(Status.CANCELED, f"all {count} trials were cancelled")


def _starts(spec: SweepSpec, history: History) -> Iterable[Start]:
    room = spec.max_concurrent_runs - len(history.going)
    if room <= 0:
        return
    # Only Bayesian sampling uses observations, and collecting them takes time.
    needs_observations = spec.sampling.kind == "bayesian"
    observations = _observe_all(spec, history) if needs_observations else []
    for number in history.free_numbers(spec.max_total_runs):
        if room <= 0:
            return
        start = _start(spec, number, observations)
        if start is None:
            return
        yield start
        observations.append(Observation(start.parameters))
        room -= 1


def _start(spec: SweepSpec, number: int, observations: Sequence[Observation]) -> Start | None:
    if number < len(spec.continued):
        earlier = spec.continued[number]
        return Start(number, earlier.parameters, continues=earlier.run_id)
    parameters = next_parameters(spec, number - len(spec.continued), observations)
    return None if parameters is None else Start(number, parameters)


def _observe_all(spec: SweepSpec, history: History) -> list[Observation]:
    earlier = [Observation(each.parameters, "ended", each.value) for each in spec.earlier]
    return [*earlier, *(_observe(spec, trial) for trial in history.ordered)]


def _observe(spec: SweepSpec, trial: Trial) -> Observation:
    if not trial.has_ended:
        return Observation(trial.parameters)
    if trial.status == Status.FAILED or not trial.has_value:
        return Observation(trial.parameters, "failed")
    return Observation(trial.parameters, "ended", trial.best(spec.goal))


def _missing_metric(spec: SweepSpec, first: Trial | None) -> Iterable[str]:
    """Warns as soon as the first trial has completed without the metric."""
    if first is not None and not first.has_value:
        yield f"run_{first.number} completed without logging {_instead(spec, [first])}"


def _instead(spec: SweepSpec, trials: Sequence[Trial]) -> str:
    found = {name for trial in trials for name in trial.metric_names}
    if any(trial.values for trial in trials):
        return f"the primary metric {spec.metric!r} as a number; its values are NaN"
    if spec.metric in found:
        return f"the primary metric {spec.metric!r} as a number; it is text, a row, a table or an image"
    names = sorted(found)
    logged = f"logged instead: {', '.join(map(repr, names))}" if names else "nothing was logged"
    return f"the primary metric {spec.metric!r}; {logged}"


def _last_failure(row: Sequence[Trial]) -> str:
    last = row[-1]
    return f"the last: run_{last.number}" + (f", {last.error}" if last.error else "")
