"""Saved views in the store."""

from __future__ import annotations

from trainmaster.shared.records import SavedView


def test_views_of_an_owner_and_shared_ones(store):
    mine = store.views.put(SavedView("", "ann", "runs", "mine", "filter=lr<1"), at=1.0)
    shared = store.views.put(SavedView("", "bob", "runs", "best", "", is_shared=True), at=2.0)
    store.views.put(SavedView("", "bob", "runs", "private", ""), at=3.0)
    elsewhere = store.views.put(SavedView("", "ann", "compare", "mine", ""), at=4.0)
    assert store.views.list_for("ann", "runs") == [shared, mine]
    assert store.views.list_for("ann") == [elsewhere, shared, mine]
    assert store.views.get(mine.id) == mine and store.views.get("nothing") is None


def test_a_view_is_replaced_by_the_next_of_its_name(store):
    first = store.views.put(SavedView("", "ann", "runs", "mine", "a"), at=1.0)
    second = store.views.put(SavedView("", "ann", "runs", "mine", "b", is_shared=True), at=2.0)
    assert store.views.list_for("ann") == [second]
    assert (second.id, second.created_at, second.modified_at) == (first.id, 1.0, 2.0)
    store.views.delete(first.id)
    store.views.delete(first.id)
    assert store.views.list_for("ann") == []
