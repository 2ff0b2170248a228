"""A sweep as HTML for a notebook: its progress, the best trial, a chart and the table of trials. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainmaster.notebook.widgets.markup import escape
from trainmaster.sdk.display.sparkline import sparkline
from trainmaster.sdk.display.sweep_frame import (
    best_line,
    choose_trials,
    last_failure,
    number,
    parameter_names,
    progress,
    state,
    states,
    took,
)
from trainmaster.sdk.display.text import count_of
from trainmaster.sdk.sweeps.pictures import picture
from trainmaster.shared.records import Status
from trainmaster.tuning.space import flat
from trainmaster.tuning.view import SweepView, TrialView, counts, rank_trials, value_in_words

_MOST_ROWS = 20
# Limited, because the chart is sent again at every change.
_MOST_LINES = 200
_SPARK = 16
_LONGEST_VALUE = 60


def sweep_parts(view: SweepView | None, now: float) -> Iterator[str]:
    """The parts between the head and the log; nothing for a run that is not a sweep."""
    if view is None:
        return
    if last_failure(view):
        yield f'<div class="tm-error" style="margin-top:8px">{escape(last_failure(view))}</div>'
    share = 100 * counts(view).ended / max(1, view.total)
    yield f'<div class="tm-bar"><div style="width:{share:.1f}%"></div></div>'
    yield f"<div>{_separate_facts(progress(view, now).lstrip('█░ '))}</div>"
    for text in (states(view), view.ending):
        if text:
            yield f'<div class="tm-dim">{_separate_facts(text)}</div>'
    if view.best is not None:
        yield f'<div style="margin-top:6px"><strong>{_separate_facts(best_line(view))}</strong></div>'
    if any(trial.best is not None for trial in view.trials):
        yield f'<div class="tm-picture">{_picture(view)}</div>'
    if view.trials:
        yield f'<div class="tm-wide">{_table(view, now)}</div>'


def _picture(view: SweepView) -> str:
    shown = tuple(sorted(rank_trials(view)[:_MOST_LINES], key=lambda trial: trial.number))
    left = len(view.trials) - len(shown)
    note = f'<div class="tm-dim">without the last {count_of(left, "trial")}</div>' if left else ""
    return picture(replace(view, trials=shown)).svg() + note


def _table(view: SweepView, now: float) -> str:
    trials = choose_trials(view, _MOST_ROWS)
    names = parameter_names(view.trials)
    heads = ["trial", "state", view.metric, "", *(name.lstrip("-") for name in names), "took", ""]
    rows = "".join(_row(view, trial, names, now) for trial in trials)
    left = len(view.trials) - len(trials)
    more = f'<div class="tm-dim">and {count_of(left, "more trial")}</div>' if left else ""
    heading = "".join(f"<th>{escape(head)}</th>" for head in heads)
    return f'<table class="tm-table"><tr>{heading}</tr>{rows}</table>{more}'


def _row(view: SweepView, trial: TrialView, names: list[str], now: float) -> str:
    values = flat(trial.parameters)
    cells = [f"run_{trial.number}", state(trial), number(trial.best)]
    after = [value_in_words(values[name])[:_LONGEST_VALUE] if name in values else "" for name in names]
    after += [took(trial, now), trial.error]
    line = sparkline(trial.series, _SPARK) if trial.reports > 1 else ""
    return (
        f"<tr{_kind(view, trial)}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}"
        f'<td class="tm-line">{line}</td>{"".join(f"<td>{escape(cell)}</td>" for cell in after)}</tr>'
    )


def _kind(view: SweepView, trial: TrialView) -> str:
    best = view.best
    if best is not None and trial.number == best.number:
        return ' class="tm-best"'
    if trial.status == Status.FAILED:
        return ' class="tm-bad"'
    return ' class="tm-cut"' if trial.status == Status.CANCELED else ""


def _separate_facts(text: str) -> str:
    """HTML for a line whose facts are separated by two spaces, which HTML would merge into one."""
    return escape(text).replace("  ", " · ")
