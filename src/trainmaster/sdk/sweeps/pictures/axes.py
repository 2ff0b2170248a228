"""The axes of pictures: linear, logarithmic, or with one position for each category. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.shared.metrics import finite_number
from trainmaster.tuning.space import Leaf, flat, leaves, read_space
from trainmaster.tuning.view import SweepView, value_in_words

_MOST_CATEGORIES = 12
_TICKS = 5
_WIDE_RATIO = 1000.0


@dataclass(frozen=True)
class Axis:
    """Maps a value to a position between 0 and 1."""

    name: str
    low: float = 0.0
    high: float = 1.0
    logarithmic: bool = False
    categories: tuple[str, ...] = ()

    def place(self, value: Any) -> float | None:
        """The position of a value; None if it has none."""
        if self.categories:
            word = value_in_words(value)
            return _even(self.categories.index(word), len(self.categories)) if word in self.categories else None
        number = as_number(value)
        if number is None or (self.logarithmic and number <= 0):
            return None
        return self._share(number)

    def ticks(self) -> list[tuple[float, str]]:
        """Positions and their labels."""
        if self.categories:
            return [(_even(n, len(self.categories)), word) for n, word in enumerate(self.categories)]
        values = _log_ticks(self.low, self.high) if self.logarithmic else _linear_ticks(self.low, self.high)
        return [(self._share(value), tick_in_words(value)) for value in values]

    def _share(self, number: float) -> float:
        low, high, value = self.low, self.high, number
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        if low == high:
            return 0.5
        # Halved first: the difference of two large floats may overflow.
        return (value / 2 - low / 2) / (high / 2 - low / 2)


def parameter_axes(view: SweepView) -> list[Axis]:
    """An axis for each parameter, in the order of the search space."""
    # If several branches have a parameter with the same name, the first one is used.
    known = dict(reversed(list(leaves(read_space(view.space)))))
    values: dict[str, list[Any]] = {}
    for trial in view.trials:
        for name, value in flat(trial.parameters).items():
            values.setdefault(name, []).append(value)
    for name, _ in leaves(read_space(view.space)):
        values.setdefault(name, [])
    return [_axis(name, known.get(name), found) for name, found in values.items()]


def metric_axis(view: SweepView) -> Axis:
    """The axis of the primary metric, logarithmic if its values span powers of ten."""
    values = [number for trial in view.trials if (number := as_number(trial.best)) is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    return _numeric(view.metric, low, high, logarithmic=low > 0 and high / low >= _WIDE_RATIO)


def tick_in_words(value: float) -> str:
    """
    >>> tick_in_words(1e-05), tick_in_words(0.25), tick_in_words(2e20)
    ('1e-5', '0.25', '2e+20')
    """
    return f"{value:.6g}".replace("e-0", "e-").replace("e+0", "e+")


def as_number(value: Any) -> float | None:
    """The value as a finite number, else None. True and False count as words."""
    return None if isinstance(value, bool) else finite_number(value)


def _axis(name: str, leaf: Leaf | None, values: Sequence[Any]) -> Axis:
    options = list(leaf.options) if leaf is not None and leaf.kind == "choice" else []
    numbers = [as_number(value) for value in (*options, *values)]
    if leaf is None or (options and len(options) <= _MOST_CATEGORIES) or None in numbers:
        return Axis(name, categories=_words([*options, *values]))
    found = [number for number in numbers if number is not None]
    logarithmic = "log" in leaf.kind or _spreads(options)
    low, high = _limits(leaf)
    found += [limit for limit in (low, high) if limit is not None and not (logarithmic and limit <= 0)]
    return _numeric(name, min(found, default=0.0), max(found, default=1.0), logarithmic)


def _numeric(name: str, low: float, high: float, logarithmic: bool) -> Axis:
    # Rounding may turn small values into zeros, which have no position on a logarithmic axis.
    return Axis(name, low, high, logarithmic and low > 0)


def _limits(leaf: Leaf) -> tuple[float | None, float | None]:
    """The limits of the space; a normal distribution has none."""
    first = leaf.arguments[0]
    if leaf.kind == "randint":
        return 0.0, float(first - 1)
    if leaf.kind.endswith("loguniform"):
        return math.exp(first), math.exp(leaf.arguments[1])
    if leaf.kind.endswith("uniform"):
        return float(first), float(leaf.arguments[1])
    return None, None


def _spreads(options: Iterable[Any]) -> bool:
    numbers = [number for option in options if (number := as_number(option)) is not None]
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE_RATIO


def _words(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value_in_words(value) for value in values))


def _even(place: int, count: int) -> float:
    return 0.5 if count == 1 else place / (count - 1)


def _linear_ticks(low: float, high: float) -> list[float]:
    """
    >>> _linear_ticks(0, 0.6), _linear_ticks(3, 3)
    ([0.0, 0.2, 0.4, 0.6], [3])
    """
    span = high - low
    if not 0 < span < math.inf:
        return [low] if low == high else [low, high]
    step = _round_step(span / _TICKS)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    # By its digits: 3 * 0.1 is not quite 0.3.
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= least * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[float]:
    """
    >>> _log_ticks(0.0001, 0.3), _log_ticks(20, 90)
    ([0.0001, 0.001, 0.01, 0.1], [20.0, 50.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9)):
        candidates = [float(f"{each}e{power}") for power in range(first, last + 1) for each in steps]
        found = [value for value in candidates if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) >= 2:
            return found[:: -(-len(found) // (_TICKS + 2))]
    return [low, high]
