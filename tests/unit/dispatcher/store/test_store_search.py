"""Searching runs: every filter and order gives what a plain loop over all runs gives."""

from __future__ import annotations

import fnmatch
import itertools
import json
import random

import pytest

from trainmaster.dispatcher.store import run_pages
from trainmaster.dispatcher.store.cursors import Cursor, dump_cursor
from trainmaster.dispatcher.store.search import Search
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.filters import parse_filter, parse_order
from trainmaster.shared.records import RunError, Status

NOW = 1_800_000_000.0
COUNT = 40


def spec(*arguments):
    return json.dumps({"version": 1, "arguments": list(arguments)})


@pytest.fixture
def filled(store, add):
    """Runs that differ in everything, some without this or that."""
    # In one transaction, which is faster.
    with store._database.write():
        fill(store, add)
    return store


def fill(store, add):
    chance = random.Random(7)
    for n in range(COUNT):
        status = list(Status)[n % 10]
        words = ["--lr", str(chance.choice([0.1, 0.01, 0.5]))] if n % 4 else []
        words += ["--model", chance.choice(["base", "Large", "50"])] if n % 3 else []
        words += ["--mixed", chance.choice(["3", "deep"])] if n % 5 else []
        words += ["--fast"] if n % 2 else []
        add(
            f"run_{n}",
            experiment=f"exp{n % 3}",
            status=status,
            created_at=NOW - chance.randrange(1000) * 3600,
            started_at=NOW - 500 if n % 2 else None,
            ended_at=NOW - n if n % 10 > 6 else None,
            display_name=chance.choice(["", "debug one", "Debug_two", "50% [a]*"]),
            target="local",
            spec=spec(*words),
            submitted_by=chance.choice(["ann", "bob"]),
            parent_id="run_0" if n and n % 7 == 0 else None,
            error=RunError("ScriptError", "out of memory") if status is Status.FAILED else None,
            tags={"kind": chance.choice(["base", 7, 7.5, True])} if n % 2 else {},
            properties={"commit": f"abc{n % 4}"},
        )
        if n % 3:
            values = [chance.random() for _ in range(3)]
            records = [{"k": "metric", "n": "loss", "v": value, "t": 1.0} for value in values]
            store.journals.ingest(f"run_{n}", "0-1-a.jsonl", 0, 1, records)
    store.journals.ingest("run_1", "0-1-a.jsonl", 1, 2, [{"k": "metric", "n": "loss", "v": float("nan"), "t": 1.0}])


@pytest.fixture(params=["as is", "walk", "short walk, then few"])
def way(request, monkeypatch):
    """All ways to find a page."""
    if request.param != "as is":
        monkeypatch.setattr(run_pages.math, "isqrt", lambda number: -1)
    if request.param == "short walk, then few":
        monkeypatch.setattr(run_pages, "_WALKS", (3, 9))


def find(store, text="", order="", columns=("id",), limit=100, cursor="", children=True, counts=False, skip=0):
    wanted = Search(
        parse_filter(text, NOW),
        parse_order(order) if order else None,
        tuple(columns),
        limit,
        cursor,
        f"{text}|{order}",
        children,
        counts,
        skip=skip,
    )
    return store.search.find(wanted, NOW)


def ids(page):
    return [row["id"] for row in page.rows]


EVERYTHING = (
    *("id", "name", "experiment", "number", "status", "type", "target", "user", "parent", "error"),
    *("created", "started", "ended", "duration", "tags", "properties", "arguments", "metrics"),
    *("metric.loss.min", "metric.loss.max", "metric.loss.count"),
)


def all_runs(store):
    return find(store, columns=EVERYTHING).rows


FILTERS = {
    "lr < 0.1": lambda run: run["arguments"].get("lr", 9) < 0.1,
    "lr = 0.10": lambda run: run["arguments"].get("lr") == 0.1,
    "lr != 0.1": lambda run: "lr" in run["arguments"] and run["arguments"]["lr"] != 0.1,
    "not lr = 0.1": lambda run: run["arguments"].get("lr") != 0.1,
    'arg.model = "50"': lambda run: run["arguments"].get("model") == 50,
    "model in (base, Large)": lambda run: run["arguments"].get("model") in ("base", "Large"),
    "model ~* l*": lambda run: run["arguments"].get("model") == "Large",
    "model > a": lambda run: run["arguments"].get("model") == "base",
    "fast = true": lambda run: run["arguments"].get("fast") == "true",
    "fast is not set": lambda run: "fast" not in run["arguments"],
    "metric.loss < 0.5": lambda run: run["metrics"].get("loss", 9) < 0.5,
    "metric.loss.min <= 0.2": lambda run: (run["metric.loss.min"] or 9) <= 0.2,
    "metric.loss.max > 0.8": lambda run: (run["metric.loss.max"] or 0) > 0.8,
    "metric.loss.count = 3": lambda run: run["metric.loss.count"] == 3,
    "not metric.loss is set": lambda run: run["metrics"].get("loss", float("nan")) != run["metrics"].get("loss"),
    "tag.kind = base": lambda run: run["tags"].get("kind") == "base",
    "tag.kind = 7": lambda run: run["tags"].get("kind") == 7,
    "tag.kind > 7": lambda run: run["tags"].get("kind") == 7.5,
    "tag.kind != 7": lambda run: "kind" in run["tags"] and run["tags"]["kind"] != 7,
    "tag.kind = true": lambda run: run["tags"].get("kind") is True,
    "tag.kind in (base, 7.5)": lambda run: run["tags"].get("kind") in ("base", 7.5),
    "property.commit ~ ab?3": lambda run: run["properties"]["commit"] == "abc3",
    "status in (Failed, Canceled)": lambda run: run["status"] in ("Failed", "Canceled"),
    "status = active": lambda run: run["ended"] is None,
    "status != Failed": lambda run: run["status"] != "Failed",
    "experiment = exp1": lambda run: run["experiment"] == "exp1",
    "experiment = nothing": lambda run: False,
    "not experiment ~ *1": lambda run: run["experiment"] != "exp1",
    "user = ann": lambda run: run["user"] == "ann",
    "target != local": lambda run: False,
    "parent = run_0": lambda run: run["parent"] == "run_0",
    "parent is not set": lambda run: run["parent"] is None,
    "not parent = run_0": lambda run: run["parent"] is None,
    "name ~ debug*": lambda run: run["name"].startswith("debug"),
    "name ~* debug*": lambda run: run["name"].lower().startswith("debug"),
    'name ~ "*% [a]\\*"': lambda run: run["name"] == "50% [a]*",
    'name !~ "?ebug_two"': lambda run: run["name"] not in ("", "Debug_two"),
    "name is set": lambda run: run["name"] != "",
    "id = run_3": lambda run: run["id"] == "run_3",
    "number <= 3": lambda run: run["number"] <= 3,
    "number < 2.5": lambda run: run["number"] < 2.5,
    "number in (2, 2.5, 1e300)": lambda run: run["number"] == 2,
    "not number > 1e300": lambda run: True,
    "metric.loss.count < 3.5": lambda run: run["metric.loss.count"] == 3,
    "created > -7d": lambda run: run["created"] > NOW - 7 * 86400,
    "started is set": lambda run: run["started"] is not None,
    "not started > -1d": lambda run: run["started"] is None,
    "duration > 450": lambda run: (run["duration"] or 0) > 450,
    'error ~ "*out of memory*"': lambda run: run["status"] == "Failed",
}


@pytest.mark.usefixtures("way")
def test_every_filter_is_what_a_loop_would_find(filled):
    everything = all_runs(filled)
    assert len(everything) == COUNT
    for text, test in FILTERS.items():
        assert ids(find(filled, text)) == [run["id"] for run in everything if test(run)], text
    pairs = itertools.islice(itertools.product(FILTERS.items(), reversed(FILTERS.items())), 0, None, 67)
    for (one, test_one), (other, test_other) in pairs:
        both = find(filled, f"({one}) and ({other})", order="created", counts=True)
        expected = {run["id"] for run in everything if test_one(run) and test_other(run)}
        assert (set(ids(both)), both.total) == (expected, len(expected)), (one, other)
        either = find(filled, f"{one} or not {other}")
        assert ids(either) == [run["id"] for run in everything if test_one(run) or not test_other(run)], (one, other)


ORDERS = (
    "metric.loss",
    "metric.loss.min",
    "metric.loss.max",
    "metric.loss.count",
    "lr",
    "arg.model",
    "arg.mixed",
    "tag.kind",
    "property.commit",
    "created",
    "started",
    "ended",
    "duration",
    "name",
    "status",
    "user",
    "experiment",
    "number",
    "id",
    "parent",
)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", ["", "lr < 0.3 and not user = bob"])
def test_pages_have_every_run_once_in_order(filled, text):
    for order, way in itertools.product(ORDERS, ("", " desc")):
        whole = find(filled, text, order + way, columns=("id", order))
        pages, cursor = [], ""
        while True:
            page = find(filled, text, order + way, columns=("id", order), limit=25, cursor=cursor)
            pages += page.rows
            cursor = page.cursor
            if not cursor:
                break
        assert pages == list(whole.rows), (order, way)
        assert sorted(ids(whole)) == sorted(ids(find(filled, text)))
        values = [row[order] for row in whole.rows]
        numbers = [value for value in values if isinstance(value, float | int) and value == value]
        if order.startswith("tag"):
            continue
        assert numbers == sorted(numbers, reverse=way == " desc"), (order, way)
        texts = [value for value in values if isinstance(value, str)]
        assert texts == sorted(texts, reverse=way == " desc"), (order, way)
        absent = [n for n, value in enumerate(values) if value is None]
        assert absent == list(range(len(values) - len(absent), len(values))) or order == "metric.loss", (order, way)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", ["", "lr < 0.3 and not user = bob"])
def test_a_page_far_below_is_read_without_those_before(filled, text):
    for order, way in itertools.product(ORDERS, ("", " desc")):
        whole = ids(find(filled, text, order + way))
        for skip in (1, 7, len(whole) - 2, len(whole) + 5):
            page = find(filled, text, order + way, limit=5, skip=skip)
            assert ids(page) == whole[skip : skip + 5], (order, way, skip)
        first = find(filled, text, order + way, limit=5, skip=3)
        assert ids(find(filled, text, order + way, limit=5, cursor=first.cursor, skip=2)) == whole[10:15]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("order", ["metric.loss", "metric.loss.min desc", "lr", "arg.model", "tag.kind desc"])
def test_a_filter_on_what_is_sorted_by_is_what_a_loop_would_find(filled, order):
    """A run without the value is found by the opposite of a condition, and by one on another part of the metric."""
    everything = all_runs(filled)
    name = order.removeprefix("arg.").removesuffix(" desc").removesuffix(".min")
    for text, test in FILTERS.items():
        if name in text:
            for more, test_more in (("", lambda run: True), (" and user = ann", lambda run: run["user"] == "ann")):
                expected = {run["id"] for run in everything if test(run) and test_more(run)}
                assert set(ids(find(filled, f"({text}){more}", order))) == expected, (text, more)


def test_new_runs_do_not_move_a_cursor(filled, add):
    first = find(filled, order="created desc", limit=10)
    add("newest", created_at=NOW + 1)
    add("between", created_at=NOW - 10)
    following = find(filled, order="created desc", limit=100, cursor=first.cursor)
    assert not set(ids(first)) & set(ids(following)) and "newest" not in ids(following)
    newest_first = find(filled, limit=10)
    add("even newer", created_at=NOW + 2)
    assert not set(ids(newest_first)) & set(ids(find(filled, cursor=newest_first.cursor)))


def test_a_cursor_of_another_search_is_refused(filled):
    cursor = find(filled, order="lr", limit=3).cursor
    for wrong in (cursor, "xx", "W10", "bnVsbA"):
        with pytest.raises(UserErrorException, match="the cursor cannot be used"):
            find(filled, "user = ann", order="lr", cursor=wrong)


def test_a_forged_cursor_is_refused(filled):
    for order, value in (("lr", "text"), ("name", 3), ("lr", None), ("lr", 2**70), ("lr", [1]), ("created", True)):
        cursor = dump_cursor(Cursor(0, (value, 1)), f"|{order}")
        try:
            find(filled, order=order, cursor=cursor)
        except UserErrorException as error:
            assert "the cursor cannot be used" in str(error)
    with pytest.raises(UserErrorException, match="the cursor cannot be used"):
        find(filled, order="lr", cursor=dump_cursor(Cursor(0, (1.0, 2**70)), "|lr"))


def test_children_are_found_if_asked_for(filled):
    without = ids(find(filled, children=False))
    children = [f"run_{n}" for n in range(COUNT) if n and n % 7 == 0]
    assert set(without) == {f"run_{n}" for n in range(COUNT)} - set(children)
    assert sorted(ids(find(filled, "parent = run_0", children=False))) == sorted(children)
    assert set(ids(find(filled, "lr is set", children=False))) <= set(without)


def test_only_columns_asked_for_are_given(filled):
    (row,) = find(filled, "id = run_1", columns=("lr", "--fast", "metric.loss.count", "tag.kind", "status")).rows
    assert list(row) == ["lr", "--fast", "metric.loss.count", "tag.kind", "status"]
    assert (row["--fast"], row["metric.loss.count"]) == ("true", 4)
    assert find(filled, "id = nothing").rows == ()
    with pytest.raises(UserErrorException, match="Did you mean 'status'"):
        find(filled, columns=("statos",))


def test_values_are_never_part_of_the_statement(filled):
    """Quotes and marks in every place where a filter takes a text."""
    evil = "x'; DROP TABLE runs; --\\\" %_*?[\0\ud800"
    quoted = json.dumps(evil, ensure_ascii=False).replace("\\u0000", "\0")
    for field in ("lr", "tag.kind", "property.commit", "name", "user", "experiment", f"tag.{quoted}", f"arg.{quoted}"):
        for condition in (
            f"{field} = {quoted}",
            f"{field} in ({quoted})",
            f"{field} ~ {quoted}",
            f"{field} < {quoted}",
        ):
            find(filled, condition)
    assert find(filled, f"metric.{quoted}.min > 1", order=f"metric.{quoted}").rows == ()
    assert len(find(filled).rows) == COUNT


def test_a_pattern_is_that_of_a_shell(filled, add):
    names = ["a", "ab", "a*", "a?b", "a[b]c", "A", "a%", "a_b", "a\\b"]
    for number, name in enumerate(names):
        add(f"named_{number}", display_name=name)
    for pattern in ("a", "a*", "a?", "?", "a??", "*[b]*", "a%", "a_b", "*b*"):
        plain = pattern.replace("[", "[[]")
        expected = {name for name in names if fnmatch.fnmatchcase(name, plain)}
        found = find(filled, f'id ~ named* and name ~ "{pattern}"', columns=("name",))
        assert {row["name"] for row in found.rows} == expected, pattern
    found = find(filled, 'id ~ named* and name ~ "a\\*"', columns=("name",))
    assert [row["name"] for row in found.rows] == ["a*"]
