"""Retention rules: what they keep, as a table, and what holds for all of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.dispatcher.runs.retention_rules import (
    Best,
    Candidate,
    Newest,
    Part,
    Tagged,
    Younger,
    decide,
    next_change,
    parse_rule,
)
from trainmaster.job.errors import UserErrorException

HOUR, DAY = 3600.0, 86400.0
NOW = 100 * DAY

RUNS = [
    Candidate("f", NOW - HOUR / 2, values={"accuracy": (0.1, 0.5), "loss": (0.3, 2.0)}),
    Candidate("e", NOW - 1 * DAY, values={"accuracy": (0.1, 0.9), "loss": (0.2, 2.0)}),
    Candidate("d", NOW - 2 * DAY, tags={"kind": "base", "good": None}),
    Candidate("c", NOW - 3 * DAY, values={"accuracy": (0.1, 0.9), "loss": (math.nan, math.nan)}),
    Candidate("b", NOW - 4 * DAY, protection="a model was registered from it"),
    Candidate("a", NOW - 9 * DAY, tags={"kind": "other"}, values={"accuracy": (0.7, 0.8), "loss": (0.1, 0.1)}),
]

TABLE = [
    ("newest 1", "fb"),
    ("newest 3", "fedb"),
    ("newest 99", "fedcba"),
    ("best 1 by accuracy", "eb"),
    ("best 2 by accuracy", "ecb"),
    ("best 3 by accuracy highest", "ecba"),
    ("best 1 by loss lowest", "ba"),
    ("best 2 by loss lowest", "eba"),
    ("best 1 by loss highest", "fb"),
    ("best 5 by absent", "b"),
    ("tagged", "dba"),
    ("tagged good", "db"),
    ("tagged kind=base", "db"),
    ("tagged kind=", "b"),
    ("younger than 36h", "feb"),
    ("younger than 1w", "fedcb"),
    ("keep: best 1 by loss lowest, newest 1; tagged good", "fdba"),
]


@pytest.mark.parametrize(("rule", "kept"), TABLE)
def test_what_a_rule_keeps(rule: str, kept: str) -> None:
    verdicts = decide(parse_rule(rule), RUNS, NOW)
    assert [verdict.run_id for verdict in verdicts] == list("fedcba")
    assert "".join(verdict.run_id for verdict in verdicts if verdict.is_kept) == kept


def test_every_run_has_its_reason() -> None:
    verdicts = decide(parse_rule("best 1 by accuracy, newest 1, tagged"), RUNS, NOW)
    assert {verdict.run_id: verdict.reason for verdict in verdicts} == {
        "f": "newest 1",
        "e": "best 1 by accuracy highest",
        "d": "tagged",
        "c": "no part of the rule keeps it",
        "b": "a model was registered from it",
        "a": "tagged",
    }


def test_a_run_that_just_ended_is_spared() -> None:
    verdicts = decide(parse_rule("tagged"), RUNS, NOW, grace=HOUR)
    assert verdicts[0].is_kept and verdicts[0].reason == "it ended less than 60 minutes ago"
    assert next_change(parse_rule("tagged"), RUNS, NOW, HOUR) == RUNS[0].ended_at + HOUR
    assert next_change(parse_rule("tagged"), RUNS[1:], NOW, HOUR) is None
    assert next_change(parse_rule("younger than 3d"), RUNS[1:], NOW, HOUR) == RUNS[2].ended_at + 3 * DAY


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty and would remove every run"),
        ("keep: ,", "is empty and would remove every run"),
        ("newest", "is not a part"),
        ("newest 0", "must be from 1"),
        ("newest 99999999999999999999", "must be from 1"),
        ("best 5", "is not a part"),
        ("best 5 by loss", "does not say whether low or high values of 'loss' are best"),
        ("best 5 by val_RMSE", "does not say"),
        ("younger than 3 years", "is not a part"),
        ("oldest 3", "is not a part"),
        (", ".join(["tagged"] * 21), "at most 20"),
    ],
)
def test_a_rule_that_cannot_be_read(text: str, complaint: str) -> None:
    with pytest.raises(UserErrorException, match=complaint):
        parse_rule(text)


names = st.sampled_from(["accuracy", "f1", "score"])
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Newest, st.integers(1, 5)),
    st.builds(Best, st.integers(1, 5), names, st.sampled_from(["highest", "lowest"])),
    st.builds(Tagged, st.sampled_from([None, "kind"]), st.just(None)),
    st.builds(Younger, st.integers(1, 20).map(lambda days: days * DAY)),
)
rules = st.lists(parts, min_size=1, max_size=4).map(tuple)
pairs = st.tuples(st.floats(-10, 10), st.floats(-10, 10)).map(lambda pair: (min(pair), max(pair)))


@st.composite
def histories(draw: st.DrawFn) -> list[Candidate]:
    count = draw(st.integers(0, 12))
    return [
        Candidate(
            f"run{n}",
            NOW - draw(st.floats(0, 30)) * DAY,
            draw(st.dictionaries(st.sampled_from(["kind", "good"]), st.sampled_from([None, "x"]))),
            draw(st.dictionaries(names, pairs)),
            draw(st.sampled_from(["", "", "", "a service uses a model of it"])),
        )
        for n in range(count)
    ]


def kept(rule: tuple[Part, ...], runs: list[Candidate], grace: float = 0.0) -> set[str]:
    return {verdict.run_id for verdict in decide(rule, runs, NOW, grace) if verdict.is_kept}


@given(rules, histories(), st.floats(0, 10 * DAY))
def test_what_must_stay_stays(rule: tuple[Part, ...], runs: list[Candidate], grace: float) -> None:
    stay = {run.id for run in runs if run.protection or NOW - run.ended_at < grace}
    assert stay <= kept(rule, runs, grace)


@given(rules, parts, histories())
def test_a_longer_rule_keeps_at_least_as_much(rule: tuple[Part, ...], more: Part, runs: list[Candidate]) -> None:
    assert kept(rule, runs) <= kept((*rule, more), runs)
    assert kept(rule, runs) == kept(tuple(reversed(rule)), runs)


@given(rules, histories())
def test_applying_a_rule_twice_removes_nothing_more(rule: tuple[Part, ...], runs: list[Candidate]) -> None:
    rest = [run for run in runs if run.id in kept(rule, runs)]
    assert kept(rule, rest) == {run.id for run in rest}


@given(st.integers(1, 5), names, histories())
def test_a_larger_number_keeps_at_least_as_much(count: int, metric: str, runs: list[Candidate]) -> None:
    assert kept((Newest(count),), runs) <= kept((Newest(count + 1),), runs)
    assert kept((Best(count, metric),), runs) <= kept((Best(count + 1, metric),), runs)


@given(rules)
def test_a_rule_reads_as_it_is_written(rule: tuple[Part, ...]) -> None:
    assert parse_rule(", ".join(map(str, rule))) == rule
