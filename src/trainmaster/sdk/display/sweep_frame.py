"""A sweep as lines of text: its settings, its progress, the best trial, and a table of trials. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainmaster.sdk.display.describing import iso, style_of
from trainmaster.sdk.display.sparkline import sparkline
from trainmaster.sdk.display.table import Column, Paint, cells, clip, render
from trainmaster.sdk.display.text import count_of, duration, plain_text
from trainmaster.shared.records import Status
from trainmaster.tuning.space import flat
from trainmaster.tuning.view import (
    SweepSummary,
    SweepView,
    TrialView,
    counts,
    rank_trials,
    seconds_left,
    summary_of,
    value_in_words,
)

_BAR = 24
_SPARK = 12
_WIDEST = 24
_GAP = 2
_CUT = "Cut"
# Keys of columns. They begin with a space, which names of parameters do not.
_TRIAL, _STATE, _METRIC, _LINE, _TOOK, _PARAMETERS = " trial", " state", " metric", " line", " took", " parameters"


def frame(view: SweepView, now: float, width: int, height: int, paint: Paint) -> list[str]:
    """At most `height` lines of at most `width` cells, to be redrawn."""
    lines = [paint(clip(line, width), styles) for line, styles in _head(view, now)]
    room = height - len(lines) - 3
    if room < 1 or not view.trials:
        return lines[:height]
    chosen = choose_trials(view, room)
    drawn = table(view, chosen, now, width, paint)
    lines += ["", *drawn]
    left = len(view.trials) - len(chosen) * bool(drawn)
    return [*lines, clip(f"and {count_of(left, 'more trial')}", width)] if left else lines


def whole(view: SweepView, now: float, width: int | None, paint: Paint, limit: int | None = None) -> list[str]:
    """All lines; only the first `limit` trials in the table."""
    lines = [paint(line, styles) for line, styles in _head(view, now)]
    if not view.trials:
        return lines
    chosen = rank_trials(view)[:limit]
    # On a very narrow terminal, wrapped lines are better than none.
    lines += ["", *(table(view, chosen, now, width, paint) or table(view, chosen, now, None, paint))]
    left = len(view.trials) - len(chosen)
    return [*lines, f"and {count_of(left, 'more trial')}"] if left else lines


def choose_trials(view: SweepView, room: int) -> list[TrialView]:
    """The best trials and, in up to half of the lines, active ones; in the order of rank."""
    order = rank_trials(view)
    if len(order) <= room:
        return order
    going = [trial for trial in order if not trial.has_ended][: room // 2]
    kept = {trial.number for trial in going}
    for trial in order:
        if len(kept) >= room:
            break
        kept.add(trial.number)
    return [trial for trial in order if trial.number in kept]


def progress(view: SweepView, now: float) -> str:
    """The progress in one line."""
    done = counts(view).ended
    line = f"{bar(done, view.total)} {done} of {count_of(view.total, 'trial')}"
    if view.started_at is not None:
        line += f"  {duration(max(0.0, (view.ended_at or now) - view.started_at))}"
    left = seconds_left(view, now)
    return line if left is None else f"{line}, about {duration(left)} left"


def states(view: SweepView) -> str:
    """The number of trials in each state; empty without trials."""
    found = counts(view)
    words = {
        "going": found.going, "completed": found.completed, "cut": found.cut,
        "canceled": found.canceled, "failed": found.failed,
    }  # fmt: skip
    return "  ".join(f"{count} {word}" for word, count in words.items() if count)


def bar(done: int, total: int) -> str:
    """
    >>> bar(6, 12)
    '████████████░░░░░░░░░░░░'
    """
    full = _BAR * min(done, total) // max(1, total)
    return "█" * full + "░" * (_BAR - full)


def best_line(view: SweepView) -> str:
    """The best trial so far: its value, number and parameters; empty if there is none."""
    best = view.best
    if best is None:
        return ""
    return f"best {view.metric} {number(best.best)}: run_{best.number}  {parameters_in_words(best.parameters)}"


def last_failure(view: SweepView) -> str:
    """The trial that failed last, and why; empty if none failed."""
    failed = [trial for trial in view.trials if trial.error]
    last = max(failed, key=lambda trial: trial.ended_at or 0.0, default=None)
    return "" if last is None else f"run_{last.number} failed: {last.error}"


def news(view: SweepView, trial: TrialView) -> str:
    """One line about a trial and its state."""
    parts = [f"run_{trial.number} {state(trial)}"]
    if trial.best is not None:
        parts.append(f"{view.metric} {number(trial.best)}")
    parts.append(parameters_in_words(trial.parameters))
    why = trial.error or trial.cut_reason
    return plain_text("  ".join([*parts, why] if why else parts))


def state(trial: TrialView) -> str:
    """The state of a trial; for one that the policy cut, also the interval."""
    if trial.status == Status.CANCELED and trial.cut_interval is not None:
        return f"{_CUT} at {trial.cut_interval}"
    return str(trial.status)


def parameters_in_words(parameters: Mapping[str, Any]) -> str:
    """
    >>> parameters_in_words({"--lr": 0.012345678, "layers": [64, 32], "--model": {"--kind": "cnn"}})
    'lr=0.01235 layers=64,32 kind=cnn'
    """
    return " ".join(f"{name.lstrip('-')}={value_in_words(value)}" for name, value in flat(parameters).items())


def number(value: float | None) -> str:
    """A value of the metric."""
    return "" if value is None else f"{value:.6g}"


def took(trial: TrialView, now: float) -> str:
    """How long a trial has run; empty if it never started."""
    if trial.started_at is None:
        return ""
    if trial.has_ended and trial.ended_at is None:
        return ""
    return duration(max(0.0, (trial.ended_at or now) - trial.started_at))


def table(view: SweepView, trials: Sequence[TrialView], now: float, width: int | None, paint: Paint) -> list[str]:
    """The trials as a table with as many columns as fit; empty if none fit."""
    names = parameter_names(view.trials)
    rows = [_row(trial, names, now) for trial in trials]
    columns = _columns(view, names)
    for chosen in _choices(names):
        some = [columns[name] for name in chosen]
        cells_of = [[row[name] for name in chosen] for row in rows]
        if width is None or _needs(some, cells_of) <= width:
            return render(some, cells_of, width, paint)
    return []


def parameter_names(trials: Iterable[TrialView]) -> list[str]:
    """The parameters of the trials, in the order of their first appearance."""
    return list(dict.fromkeys(name for trial in trials for name in flat(trial.parameters)))


def sweep_as_json(view: SweepView, now: float) -> dict[str, Any]:
    """The keys of `sweep show --json`. Times are ISO 8601, UTC."""
    return {
        **summary_as_json(summary_of(view, now)),
        "trials": [_trial_as_json(trial) for trial in rank_trials(view)],
    }


def summary_as_json(summary: SweepSummary) -> dict[str, Any]:
    """The keys of `sweep list --json`: the same without the trials."""
    view, found, left, best = summary.view, summary.counts, summary.seconds_left, summary.best
    return {
        "id": view.run_id,
        "experiment": view.experiment,
        "status": str(view.status),
        "metric": view.metric,
        "goal": str(view.goal),
        "sampling": view.sampling,
        "policy": view.policy,
        "space": dict(view.space),
        "max_total_runs": view.max_total_runs,
        "max_concurrent_runs": view.max_concurrent_runs,
        "max_duration_minutes": view.max_duration_minutes,
        "total": view.total,
        "counts": {**vars(found), "ended": found.ended},
        "seconds_left": None if left is None else round(left, 3),
        "started_at": iso(view.started_at),
        "ended_at": iso(view.ended_at),
        "ending": view.ending or None,
        "warnings": list(view.warnings),
        "waiting_for": view.waiting_for or None,
        "best": None if best is None else _trial_as_json(best),
    }


def _trial_as_json(trial: TrialView) -> dict[str, Any]:
    return {
        "number": trial.number,
        "id": trial.run_id,
        "status": str(trial.status),
        "parameters": dict(trial.parameters),
        "best": trial.best,
        "last": trial.last,
        "reports": trial.reports,
        "series": list(trial.series),
        "started_at": iso(trial.started_at),
        "ended_at": iso(trial.ended_at),
        "cut_interval": trial.cut_interval,
        "cut_reason": trial.cut_reason or None,
        "error": trial.error or None,
    }


def _head(view: SweepView, now: float) -> list[tuple[str, str]]:
    """The lines above the table, with their styles."""
    policy = "" if view.policy == "none" else f"  {view.policy}"
    lines = [
        (f"{view.status}  {view.run_id}  {view.experiment}", f"bold {style_of(view.status)}".strip()),
        (f"{view.goal.lower()} {view.metric}  {view.sampling}{policy}", "dim"),
        (progress(view, now), ""),
        (states(view), ""),
        (best_line(view), "bold green"),
        # Later it only repeats how many trials have ended.
        ("" if view.trials else view.waiting_for, "yellow"),
        (last_failure(view), "red"),
        (view.ending, "red" if view.status == Status.FAILED else "dim"),
        *((f"note: {text}", "yellow") for text in view.warnings),
    ]
    return [(plain_text(text), styles) for text, styles in lines if text]


def _choices(names: Sequence[str]) -> Iterator[list[str]]:
    """The possible sets of columns, the largest first."""
    yield [_TRIAL, _STATE, _METRIC, _LINE, *names, _TOOK]
    yield [_TRIAL, _STATE, _METRIC, _LINE, *names]
    yield [_TRIAL, _STATE, _METRIC, _LINE, _PARAMETERS, _TOOK]
    yield [_TRIAL, _STATE, _METRIC, _LINE, _PARAMETERS]
    yield [_TRIAL, _STATE, _METRIC, _PARAMETERS]
    yield [_TRIAL, _STATE, _METRIC]


def _columns(view: SweepView, names: Sequence[str]) -> dict[str, Column]:
    best = f"run_{view.best.number}" if view.best else ""
    return {
        _TRIAL: Column("TRIAL", style=lambda text: "bold green" if text == best else ""),
        _STATE: Column("STATE", style=lambda text: "yellow" if text.startswith(_CUT) else style_of(text)),
        _METRIC: Column(clip(plain_text(view.metric), _WIDEST), right=True, style=lambda text: "bold"),
        _LINE: Column("", style=lambda text: "cyan"),
        _TOOK: Column("TOOK", right=True),
        _PARAMETERS: Column("PARAMETERS", flexible=True),
        **{name: Column(clip(plain_text(name.lstrip("-")), _WIDEST)) for name in names},
    }


def _row(trial: TrialView, names: Sequence[str], now: float) -> dict[str, str]:
    values = flat(trial.parameters)
    row = {
        _TRIAL: f"run_{trial.number}",
        _STATE: state(trial),
        _METRIC: number(trial.best),
        _LINE: sparkline(trial.series, _SPARK) if trial.reports > 1 else "",
        _TOOK: took(trial, now),
        _PARAMETERS: parameters_in_words(trial.parameters),
        **{name: clip(value_in_words(values[name]), _WIDEST) if name in values else "" for name in names},
    }
    return {name: plain_text(text) for name, text in row.items()}


def _needs(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """The minimum width of the table."""
    widths = [
        max(cells(text) for text in (column.heading, *(row[n] for row in rows))) for n, column in enumerate(columns)
    ]
    least = [min(width, _WIDEST) if column.flexible else width for column, width in zip(columns, widths, strict=True)]
    return sum(least) + _GAP * (len(least) - 1)
