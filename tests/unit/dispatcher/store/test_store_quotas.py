"""Quotas and sizes of runs in the store."""

from __future__ import annotations

from trainmaster.shared.records import NOBODY, Quota, Status


def test_quotas_are_replaced_and_deleted(store):
    store.quotas.put(Quota("ann", runs=2, disk_bytes=2**40))
    store.quotas.put(Quota("", gpus=0))
    store.quotas.put(Quota("*", nodes=3))
    store.quotas.put(Quota("ann", runs=1))
    assert store.quotas.list_all() == [Quota("", gpus=0), Quota("*", nodes=3), Quota("ann", runs=1)]
    store.quotas.put(Quota("ann"))
    assert [quota.owner for quota in store.quotas.list_all()] == ["", "*"]


def test_sizes_add_up_by_user_and_are_subtracted_with_deleted_runs(store, add):
    for run, user in (("a", "ann"), ("b", "ann"), ("c", "bob"), ("d", "bob")):
        add(run, status=Status.RUNNING if run == "d" else Status.COMPLETED, submitted_by=user)
    assert [run for _, run in store.quotas.list_unmeasured(10)] == ["a", "b", "c"]
    store.quotas.set_size("a", 100)
    store.quotas.set_size("a", 70)
    store.quotas.set_size("b", 5)
    store.quotas.set_size("gone", 5)
    assert store.quotas.read_disk_use() == {"ann": 75}
    assert [run for _, run in store.quotas.list_unmeasured(10)] == ["c"]
    store.quotas.set_size("c", 2**40)
    store.removal.delete_runs(["a", "c"])
    assert store.quotas.read_disk_use() == {"ann": 5}


def test_files_without_a_run_count_for_nobody(store):
    store.quotas.set_size_of_others(100)
    store.quotas.set_size_of_others(70)
    assert store.quotas.read_disk_use() == {NOBODY: 70}
    store.quotas.set_size_of_others(0)
    assert store.quotas.read_disk_use() == {}
    assert store.quotas.list_models_without_run() == [] and store.quotas.find_run_of_model("m-none") == ""
