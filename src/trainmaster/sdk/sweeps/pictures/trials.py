"""What the pictures share: the order and colours of trials, and the heading. Pure."""

from __future__ import annotations

from bisect import bisect_left

from trainmaster.sdk.sweeps.pictures.axes import Axis
from trainmaster.sdk.sweeps.pictures.colours import BEST, CUT, INK, QUIET, ramp
from trainmaster.sdk.sweeps.pictures.shapes import Dot, Label, Line, Shape
from trainmaster.shared.records import Status
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.view import SweepView, TrialView, rank_trials

_LETTER = 0.56
"""The average width of a character, relative to the font size."""
_GAP = 18.0


def drawing_order(view: SweepView) -> list[TrialView]:
    """Cut and failed trials first, then from worst to best, so that the best are drawn on top."""
    trials = list(reversed(rank_trials(view)))
    return sorted(trials, key=counts)


def counts(trial: TrialView) -> bool:
    """Whether a trial is drawn in colour: it has a value, and was neither cut nor failed."""
    return trial.best is not None and trial.status not in (Status.CANCELED, Status.FAILED)


class Shades:
    """The colours of values, by the number of worse trials, so that close values differ too."""

    def __init__(self, view: SweepView, axis: Axis) -> None:
        self._axis = axis
        self._maximize = view.goal == PrimaryMetricGoal.MAXIMIZE
        shares = (axis.place(trial.best) for trial in view.trials if counts(trial))
        self._shares = sorted(share for share in shares if share is not None)

    def shade_of(self, trial: TrialView) -> str:
        """The colour of a trial."""
        share = self._axis.place(trial.best)
        return CUT if share is None or not counts(trial) else self.shade_at(share)

    def shade_at(self, share: float) -> str:
        """The colour at a position of the metric's axis."""
        last = len(self._shares) - 1
        below = bisect_left(self._shares, share - 1e-9) / last if last > 0 else share
        return ramp(below if self._maximize else 1 - below)


def heading(view: SweepView, width: float, left: float) -> list[Shape]:
    """The title of the sweep, and the legend."""
    best = view.best
    count = len(view.trials)
    title = f"{view.experiment}: {view.metric} of {count} {'trial' if count == 1 else 'trials'}"
    goal = "larger is better" if view.goal == PrimaryMetricGoal.MAXIMIZE else "smaller is better"
    shapes: list[Shape] = [
        Label(left, 24, fit_text(title, width - left - 20, 15), 15, "start", INK, bold=True),
        Label(left, 44, fit_text(f"{view.sampling} sampling, {goal}", width * 0.45, 11), 11, "start", QUIET),
    ]
    entries = [] if best is None else [(BEST, f"best: run_{best.number}, {best.best:.6g}")]
    entries += [(CUT, "cut or failed")] if any(not counts(trial) and trial.has_ended for trial in view.trials) else []
    right = width - 16
    for colour, text in reversed(entries):
        right -= text_width(text, 11)
        shapes += [Label(right, 44, text, 11, "start", INK), Line(((right - 20, 44), (right - 5, 44)), colour, 2.5)]
        shapes.append(Dot(right - 12.5, 44, 3, colour))
        right -= 20 + _GAP
    return shapes


def nothing(view: SweepView, width: float, height: float) -> list[Shape]:
    """A text in the middle of a picture without trials."""
    return [] if view.trials else [Label(width / 2, height / 2, "no trials yet", 13, "middle", QUIET)]


def text_width(text: str, size: float) -> float:
    """The approximate width of a text."""
    return len(text) * size * _LETTER


def fit_text(text: str, width: float, size: float) -> str:
    """
    >>> fit_text("a long name", 40, 11)
    'a lon…'
    """
    most = max(2, int(width / (size * _LETTER)))
    return text if len(text) <= most else text[: most - 1] + "…"
