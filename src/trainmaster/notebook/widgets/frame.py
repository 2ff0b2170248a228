"""A run as lines of text for a terminal, errors first. Pure."""

from __future__ import annotations

from trainmaster.notebook.widgets.view import RunView
from trainmaster.sdk.display.describing import style_of, took
from trainmaster.sdk.display.metric_values import metric_row
from trainmaster.sdk.display.sweep_frame import frame as sweep_frame
from trainmaster.sdk.display.table import Column, Paint, clip, render
from trainmaster.sdk.display.text import count_of, duration, plain_text

_MOST_METRICS = 12
_MOST_RANKS = 8
_MOST_LINES = 12
_FEWEST_LINES = 3
_METRICS = (
    Column("METRIC", flexible=True, style=lambda text: "bold"),
    Column("LAST", right=True, flexible=True),
    Column("MIN", right=True),
    Column("MAX", right=True),
    Column("COUNT", right=True),
    Column("", flexible=True, style=lambda text: "cyan"),
)


def frame(view: RunView, now: float, width: int, height: int, paint: Paint) -> list[str]:
    """At most `height` lines of at most `width` cells; the log gets the lines that are left."""
    if view.sweep is not None:
        lines = _error(view, width, paint)
        return [*lines, *sweep_frame(view.sweep, now, width, height - len(lines), paint)][:height]
    parts = [_error(view, width, paint), [_head(view, now, width, paint)], _notes(view, width, paint)]
    parts += [_metrics(view, width, paint), _ranks(view, width, paint), _children(view, width)]
    lines = [line for part in parts for line in part]
    room = max(_FEWEST_LINES, min(_MOST_LINES, height - len(lines) - 1))
    lines += _log(view, width, room, paint)
    return lines[:height]


def _error(view: RunView, width: int, paint: Paint) -> list[str]:
    error = view.record.error
    if error is None:
        return []
    first, *rest = [plain_text(line) for line in error.message.splitlines()] or [""]
    shown = [paint(clip(f"{error.code}: {first}", width), "bold red")]
    return shown + [clip(f"  {line}", width) for line in rest[-_MOST_LINES:]]


def _head(view: RunView, now: float, width: int, paint: Paint) -> str:
    record = view.record
    seconds = took(record, now)
    facts = [record.id, f"{record.experiment} #{record.number}"]
    facts += [duration(seconds)] if seconds is not None else []
    facts += [f"on {record.target}"] if record.target else []
    status = str(record.status)
    rest = clip("  " + "  ".join(facts), max(1, width - len(status)))
    return paint(status, f"bold {style_of(record.status)}".strip()) + rest


def _notes(view: RunView, width: int, paint: Paint) -> list[str]:
    notes = [view.record.waiting_for] if view.record.waiting_for else []
    notes += [f"note: {text}" for text in view.record.warnings]
    return [paint(clip(plain_text(text), width), "yellow") for text in notes]


def _metrics(view: RunView, width: int, paint: Paint) -> list[str]:
    if not view.metrics:
        return []
    rows = [metric_row(metric.summary, metric.series) for metric in view.metrics[:_MOST_METRICS]]
    lines = ["", *render(_METRICS, [tuple(map(plain_text, row)) for row in rows], width, paint)]
    left = len(view.metrics) - _MOST_METRICS
    return [*lines, f"and {count_of(left, 'more metric')}"] if left > 0 else lines


def _ranks(view: RunView, width: int, paint: Paint) -> list[str]:
    if not view.ranks:
        return []
    # Failed ranks are always shown.
    chosen = sorted(sorted(view.ranks, key=lambda rank: not rank.failed)[:_MOST_RANKS], key=lambda rank: rank.number)
    longest = max(len(rank.name) for rank in chosen)
    lines = [
        paint(rank.name.ljust(longest), "red" if rank.failed else "bold")
        + clip(f"  {plain_text(rank.last_line)}", max(1, width - longest))
        for rank in chosen
    ]
    left = len(view.ranks) - len(chosen)
    return ["", *lines, f"and {left} more"] if left else ["", *lines]


def _children(view: RunView, width: int) -> list[str]:
    if not view.children:
        return []
    states = [str(child.status) for child in view.children]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return ["", clip(f"{count_of(len(states), 'child run')}: {counts}", width)]


def _log(view: RunView, width: int, room: int, paint: Paint) -> list[str]:
    if not view.log:
        return []
    lines = [clip(plain_text(line), width) for line in view.log[-room:]]
    return ["", paint(clip(view.log_name, width), "dim"), *lines]
