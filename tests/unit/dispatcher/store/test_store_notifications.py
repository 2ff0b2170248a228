"""Notifications in the store: the end of a run is noted in the transaction that ends it."""

from __future__ import annotations

from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.notifications import Delivery
from trainmaster.shared.notifications import Channel
from trainmaster.shared.records import RunRecord, Status

CHANNEL = Channel("team", "webhook", "https://example.org/", events=("failed",), created_at=1.0)


def add(store: Store, run_id: str, **more) -> None:
    store.experiments.ensure("e", at=0.0)
    store.runs.add(RunRecord(run_id, "e", Status.RUNNING, 0.0, **more))


def test_only_with_channels_the_end_of_a_run_is_noted(store: Store) -> None:
    add(store, "before")
    store.runs.move("before", Status.COMPLETED, at=1.0)
    store.notifications.put_channel(CHANNEL, "sealed")
    add(store, "a")
    add(store, "child", parent_id="a")
    add(store, "named", parent_id="a", tags={"notify": "team"})
    for run_id in ("child", "named", "a"):
        store.runs.move(run_id, Status.FAILED, at=1.0)
    assert [run_id for _, run_id in store.notifications.list_ends(9)] == ["named", "a"]
    assert store.notifications.count_waiting() == 2


def test_a_delivery_is_kept_until_it_is_finished(store: Store) -> None:
    store.notifications.put_channel(CHANNEL, "sealed")
    assert store.notifications.list_channels() == [CHANNEL]
    assert store.notifications.get_sealed_key("team") == "sealed"
    add(store, "a")
    store.runs.move("a", Status.FAILED, at=1.0)
    delivery = Delivery("id", "team", {"event": "failed"}, 1.0)
    store.notifications.plan([seq for seq, _ in store.notifications.list_ends(9)], [delivery])
    assert store.notifications.list_ends(9) == []
    assert store.notifications.list_deliveries(9) == [delivery]
    store.notifications.postpone(delivery, 7.0, "no answer")
    assert store.notifications.list_deliveries(9) == [Delivery("id", "team", {"event": "failed"}, 1.0, 1, 7.0)]
    assert store.notifications.list_channels()[0].last_error == "no answer"
    store.notifications.finish(delivery, 8.0, "")
    assert store.notifications.count_waiting() == 0
    (told,) = store.notifications.list_channels()
    assert (told.last_error, told.last_sent_at) == ("", 8.0)


def test_a_channel_goes_with_its_deliveries(store: Store) -> None:
    store.notifications.put_channel(CHANNEL, "")
    store.notifications.plan([], [Delivery("id", "team", {}, 1.0)])
    store.notifications.delete_channel("team")
    assert store.notifications.list_channels() == [] and store.notifications.count_waiting() == 0
