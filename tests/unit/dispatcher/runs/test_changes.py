"""The feed of changes: everything since a version, once, or the word that something may be missing."""

from __future__ import annotations

import asyncio

from trainmaster.dispatcher.runs import changes as module
from trainmaster.dispatcher.runs.changes import Changes
from trainmaster.shared.records import RunChange


def test_a_first_question_gets_a_version_to_follow():
    feed = Changes()
    feed.note("a", "created")
    first = feed.list_since("")
    assert not first.whole and first.runs == ()
    following = feed.list_since(first.version)
    assert following.whole and following.runs == () and following.version == first.version


def test_changes_come_once_in_the_order_of_the_last_one_of_each_run():
    feed = Changes()
    begin = feed.list_since("").version
    feed.note("a", "created", "NotStarted")
    feed.note("b", "created", "NotStarted")
    feed.note("a", "metrics")
    found = feed.list_since(begin)
    assert found.runs == (
        RunChange("b", ("created",), "NotStarted"),
        RunChange("a", ("created", "metrics"), "NotStarted"),
    )
    feed.note("a", "state", "Running")
    assert feed.list_since(found.version).runs == (RunChange("a", ("state",), "Running"),)


def test_a_version_of_another_dispatcher_is_told_to_start_again():
    old, new = Changes(), Changes()
    old.note("a", "created")
    for version in (old.list_since("").version, "nonsense", ".", "x.1", f"{'9' * 5000}"):
        assert not new.list_since(version).whole
    dispatcher = new.list_since("").version.partition(".")[0]
    for number in ("1", "-1", "x", "9" * 30, "²"):
        assert not new.list_since(f"{dispatcher}.{number}").whole


def test_what_was_forgotten_is_not_missed_silently():
    feed = Changes(remembered=3)
    begin = feed.list_since("").version
    for run in "abc":
        feed.note(run, "created")
    assert feed.list_since(begin).whole
    between = feed.list_since(begin).version
    feed.note("d", "created")
    assert not feed.list_since(begin).whole
    assert [run.id for run in feed.list_since(between).runs] == ["d"]


def test_a_long_list_comes_in_parts(monkeypatch):
    monkeypatch.setattr(module, "MOST_CHANGES", 4)
    feed = Changes()
    version = feed.list_since("").version
    for number in range(10):
        feed.note(f"run{number}", "created")
    seen = []
    while (found := feed.list_since(version)).runs:
        assert len(found.runs) <= 4
        seen += [run.id for run in found.runs]
        version = found.version
    assert seen == [f"run{number}" for number in range(10)]


def test_all_who_wait_are_told_at_once():
    async def check() -> None:
        feed = Changes()
        version = feed.list_since("").version
        feed.note("old", "created")
        version = feed.list_since(version).version
        waiting = [asyncio.ensure_future(feed.wait_since(version, 60.0)) for _ in range(5)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        feed.note("new", "state", "Running")
        for found in await asyncio.wait_for(asyncio.gather(*waiting), 30.0):
            assert [run.id for run in found.runs] == ["new"]
        nothing = await feed.wait_since(found.version, 0.01)
        assert nothing.whole and nothing.runs == ()

    asyncio.run(check())
