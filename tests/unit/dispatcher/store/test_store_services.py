"""Services and images in the database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.dispatcher.store import Store
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.service_spec import ImageRecord, ServiceCode, ServiceRecord, ServiceSpec, ServiceState

SPEC = ServiceSpec(
    ServiceCode("abc", "score.py", "/home/me", ("a", "b")),
    ("m:1",),
    EnvironmentSpec(pip_packages=("numpy",)),
    cors_origins=("*",),
)


@pytest.fixture
def store(tmp_path: Path):
    made = Store.create(tmp_path / "trainmaster.db")
    yield made
    made.close()


def test_a_service_comes_back_as_it_was(store: Store) -> None:
    record = ServiceRecord(
        "mine",
        "AKS",
        SPEC,
        "t1",
        served=replace(SPEC, models=("m:2",)),
        serving=3,
        tags={"a": None},
        error={"headline": "ä\ud800"},
        warnings=("w",),
    )
    store.services.add(record)
    found = store.services.get("mine")
    assert found is not None and replace(found, error={}) == replace(record, error={})
    assert store.services.list_all() == [found]
    assert store.services.get("other") is None


def test_what_an_older_deployment_has_to_say_is_not_written(store: Store) -> None:
    store.services.add(ServiceRecord("mine", "ACI", SPEC, "t1", generation=2))
    assert store.services.update("mine", 1, state=ServiceState.FAILED) is None
    changed = store.services.update("mine", 2, state=ServiceState.HEALTHY, served=SPEC, serving=2)
    assert changed is not None and changed.served == SPEC and changed.state is ServiceState.HEALTHY
    assert store.services.delete("mine") and not store.services.delete("mine")


def test_what_a_deployment_finds_out_does_not_undo_a_delete(store: Store) -> None:
    store.services.add(ServiceRecord("mine", "ACI", SPEC, "t1", generation=1))
    store.services.update("mine", state=ServiceState.DELETING)
    assert store.services.update("mine", 1, state=ServiceState.HEALTHY, serving=1) is None
    found = store.services.get("mine")
    assert found is not None and found.state is ServiceState.DELETING


def test_images_are_numbered_by_name_and_asked_for_once(store: Store) -> None:
    first = store.images.add(ImageRecord("img", 0, SPEC, "t1"))
    second = store.images.add(ImageRecord("img", 0, SPEC, "t2"))
    assert store.images.add(ImageRecord("img", 0, SPEC, "t1")) == first
    assert store.images.add(ImageRecord("other", 0, SPEC, "t3")).id == "other:1"
    assert [first.id, second.id] == ["img:1", "img:2"]
    assert [image.version for image in store.images.find("img")] == [2, 1]
    store.images.update("img", 1, state="Failed", error={"headline": "no"})
    assert store.images.find("img")[1].state == "Failed"
    assert store.images.delete("img", 2) and not store.images.delete("img", 2)
