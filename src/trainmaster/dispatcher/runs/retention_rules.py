"""Rules that say which runs of an experiment are kept, and what follows from them. Pure.

A rule is a text such as `best 5 by accuracy, newest 20, tagged`. A run is kept if any part of the rule keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from trainmaster.job.errors import UserErrorException

Direction = Literal["highest", "lowest"]

_NEWEST = re.compile(r"newest (\d+)", re.IGNORECASE)
_BEST = re.compile(r"best (\d+) by (\S+?)(?: (highest|lowest))?", re.IGNORECASE)
_TAGGED = re.compile(r"tagged(?: ([^=\s]+)(?:=(.*))?)?", re.IGNORECASE)
_YOUNGER = re.compile(r"younger than (\d+(?:\.\d+)?) ?([mhdw])", re.IGNORECASE)
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNCLEAR = re.compile(r"loss|err|perplexity|mse|mae|rmse|cost|time|seconds|latency|distance", re.IGNORECASE)
_MOST_PARTS = 20
_LARGEST = 1_000_000
_HINT = (
    "For example: best 5 by accuracy, newest 20, tagged. Also: best 5 by loss lowest, tagged NAME, younger than 30d."
)


@dataclass(frozen=True)
class Newest:
    """Keeps the newest runs."""

    count: int

    def __str__(self) -> str:
        return f"newest {self.count}"


@dataclass(frozen=True)
class Best:
    """Keeps the runs with the best values of a metric."""

    count: int
    metric: str
    direction: Direction = "highest"

    def __str__(self) -> str:
        return f"best {self.count} by {self.metric} {self.direction}"


@dataclass(frozen=True)
class Tagged:
    """Keeps runs with any tag, with one tag, or with one value of it."""

    name: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        name = f" {self.name}" if self.name is not None else ""
        return f"tagged{name}" + (f"={self.value}" if self.value is not None else "")


@dataclass(frozen=True)
class Younger:
    """Keeps runs that ended less than so many seconds ago."""

    seconds: float

    def __str__(self) -> str:
        unit = next(unit for unit in "wdhm" if self.seconds % _UNITS[unit] == 0 or unit == "m")
        return f"younger than {self.seconds / _UNITS[unit]:g}{unit}"


Part = Newest | Best | Tagged | Younger


@dataclass(frozen=True)
class Candidate:
    """An ended run without a parent, as far as rules look at it. Its children are kept or removed with it."""

    id: str
    ended_at: float
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """Those that people have set, of the run and of its children."""
    values: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Metric to its lowest and highest value, of the run and of its children."""
    protection: str = ""
    """Why no rule may remove it; empty if rules decide."""


@dataclass(frozen=True)
class Verdict:
    """What happens to a run, and why."""

    run_id: str
    is_kept: bool
    reason: str


def parse_rule(text: str) -> tuple[Part, ...]:
    """The parts of a rule.

    >>> [str(part) for part in parse_rule("keep: best 5 by accuracy, newest 20, tagged, younger than 14d")]
    ['best 5 by accuracy highest', 'newest 20', 'tagged', 'younger than 2w']
    """
    plain = " ".join(text.split())
    plain = re.sub(r"^keep:? ?", "", plain, flags=re.IGNORECASE)
    words = [each.strip() for each in re.split(r"[,;]", plain) if each.strip()]
    if not words:
        raise UserErrorException("the rule is empty and would remove every run", hint=_HINT)
    if len(words) > _MOST_PARTS:
        raise UserErrorException(f"the rule has {len(words)} parts; at most {_MOST_PARTS} are allowed")
    return tuple(map(_parse_part, words))


def _parse_part(text: str) -> Part:
    if found := _NEWEST.fullmatch(text):
        return Newest(_count(text, found[1]))
    if found := _BEST.fullmatch(text):
        return Best(_count(text, found[1]), found[2], _direction(found[2], found[3]))
    if found := _TAGGED.fullmatch(text):
        return Tagged(found[1], found[2])
    if found := _YOUNGER.fullmatch(text):
        return Younger(float(found[1]) * _UNITS[found[2].lower()])
    raise UserErrorException(f"{text[:100]!r} is not a part of a retention rule", hint=_HINT)


def _count(text: str, digits: str) -> int:
    if len(digits) > len(str(_LARGEST)) or not 1 <= int(digits) <= _LARGEST:
        raise UserErrorException(f"{text[:100]!r}: the number must be from 1 to {_LARGEST:,}", hint=_HINT)
    return int(digits)


def _direction(metric: str, given: str | None) -> Direction:
    if given is not None:
        return "lowest" if given.lower() == "lowest" else "highest"
    if _UNCLEAR.search(metric):
        raise UserErrorException(
            f"the rule does not say whether low or high values of '{metric[:100]}' are best",
            hint=f"Write 'best 5 by {metric[:100]} lowest', or 'highest'.",
        )
    return "highest"


def metrics_of(rule: Sequence[Part]) -> tuple[str, ...]:
    """The metrics that a rule compares."""
    return tuple(dict.fromkeys(part.metric for part in rule if isinstance(part, Best)))


def decide(rule: Sequence[Part], newest_first: Sequence[Candidate], now: float, grace: float = 0.0) -> list[Verdict]:
    """For each run whether it is kept, and why.

    A run that ended less than `grace` seconds ago is kept, so that nobody loses a run before having looked at it.

    >>> runs = [Candidate(name, ended_at=0.0) for name in "cba"]
    >>> [verdict.run_id for verdict in decide(parse_rule("newest 2"), runs, now=9.0) if not verdict.is_kept]
    ['a']
    """
    reasons: dict[str, str] = {}
    for run in newest_first:
        if run.protection:
            reasons[run.id] = run.protection
    for part in rule:
        for run in _list_kept(part, newest_first, now):
            reasons.setdefault(run.id, str(part))
    for run in newest_first:
        if now - run.ended_at < grace:
            reasons.setdefault(run.id, _just_ended(grace))
    unkept = "no part of the rule keeps it"
    return [Verdict(run.id, run.id in reasons, reasons.get(run.id, unkept)) for run in newest_first]


def next_change(rule: Sequence[Part], candidates: Sequence[Candidate], now: float, grace: float) -> float | None:
    """When time alone may let the rule remove further runs; None if it cannot."""
    spans = [grace, *(part.seconds for part in rule if isinstance(part, Younger))]
    later = [run.ended_at + span for run in candidates if not run.protection for span in spans]
    return min((moment for moment in later if moment > now), default=None)


def _list_kept(part: Part, newest_first: Sequence[Candidate], now: float) -> Iterator[Candidate]:
    match part:
        case Newest(count):
            yield from newest_first[:count]
        case Best(count, metric, direction):
            yield from _list_best(newest_first, metric, direction)[:count]
        case Tagged(name, value):
            yield from (run for run in newest_first if _has_tag(run.tags, name, value))
        case Younger(seconds):
            yield from (run for run in newest_first if now - run.ended_at < seconds)
        case _:
            assert_never(part)


def _list_best(newest_first: Sequence[Candidate], metric: str, direction: Direction) -> list[Candidate]:
    """The runs that have the metric, best first. Of equal ones the newer is better."""
    measured = [run for run in newest_first if metric in run.values and all(map(_is_number, run.values[metric]))]
    key: Callable[[Candidate], float] = (
        (lambda run: run.values[metric][0]) if direction == "lowest" else (lambda run: -run.values[metric][1])
    )
    return sorted(measured, key=key)


def _is_number(value: float) -> bool:
    return value == value


def _has_tag(tags: Mapping[str, str | None], name: str | None, value: str | None) -> bool:
    if name is None:
        return bool(tags)
    return name in tags and (value is None or tags[name] == value)


def _just_ended(grace: float) -> str:
    minutes = grace / 60
    return f"it ended less than {minutes:g} minutes ago" if minutes >= 1 else f"it ended less than {grace:g} s ago"
