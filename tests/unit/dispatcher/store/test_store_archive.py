"""Archived runs: left out of lists, with their descendants, until they are restored."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.store.search import Search
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.shared.filters import parse_filter, parse_order
from trainmaster.shared.records import RunQuery, Status

NOW = 1e6


@pytest.fixture
def family(store, add):
    """A parent with a child and a grandchild, and a run of its own; all have ended."""
    for run_id, parent in (("parent", None), ("child", "parent"), ("grandchild", "child"), ("other", None)):
        add(run_id, status=Status.COMPLETED, parent_id=parent, spec='{"arguments": ["--lr", "0.1"]}')
    return store


def listed(store, **query) -> list[str]:
    return [run.id for run in store.runs.find(RunQuery(**query))]


def found(store, text="", order="", **search) -> list[str]:
    ordered = parse_order(order) if order else None
    page = store.search.find(Search(parse_filter(text, NOW), ordered, **search), NOW)
    return [row["id"] for row in page.rows]


def test_archived_runs_are_left_out_of_lists(family):
    assert family.runs.set_archived(["parent"], NOW) == ["parent", "child", "grandchild"]
    assert listed(family) == found(family) == found(family, "lr = 0.1") == found(family, order="lr") == ["other"]
    assert listed(family, include_children=True) == found(family, has_children=True) == ["other"]
    assert listed(family, experiment="exp") == ["other"]
    # Whoever names the parent wants to see its children.
    assert listed(family, parent_id="parent") == ["child"]
    assert family.runs.get("child").archived_at == NOW and family.runs.get("other").archived_at is None


def test_archived_runs_are_found_if_asked_for(family):
    family.runs.set_archived(["parent"], NOW)
    assert listed(family, archived=True) == found(family, has_archived=True) == ["other", "parent"]
    assert found(family, "archived is set") == found(family, "archived > 1970-01-01") == ["parent"]
    assert found(family, "archived is not set") == ["other"]
    assert found(family, "archived is set", has_children=True) == ["grandchild", "child", "parent"]
    page = family.search.find(Search(parse_filter("archived is set", NOW), columns=("id", "archived")), NOW)
    assert page.rows == ({"id": "parent", "archived": NOW},)


def test_they_are_restored_with_their_descendants(family):
    family.runs.set_archived(["parent"], NOW)
    # What is archived already stays as it is.
    assert family.runs.set_archived(["parent", "other"], NOW + 1) == ["other"]
    assert family.runs.set_archived(["parent"], None) == ["parent", "child", "grandchild"]
    assert listed(family) == ["parent"] and family.runs.get("grandchild").archived_at is None


def test_an_active_or_unknown_run_leaves_everything_as_it_is(family, add):
    add("running", parent_id="parent")
    with pytest.raises(UserErrorException, match="running has not ended"):
        family.runs.set_archived(["other", "parent"], NOW)
    with pytest.raises(RunNotFoundException):
        family.runs.set_archived(["other", "nothing"], NOW)
    assert "other" in listed(family)
