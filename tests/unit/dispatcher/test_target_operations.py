"""Targets as a client without our checks could send them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.inner_dispatcher import InnerDispatcher

from trainmaster.job.errors import ComputeTargetException


@pytest.fixture
def dispatcher(tmp_path: Path) -> Iterator[InnerDispatcher]:
    made = InnerDispatcher(tmp_path)
    yield made
    made.close()


def target(**changes: Any) -> dict[str, Any]:
    return {"name": "four", "engine": "local", "nodes": 4, "cpus_per_node": 1, "gpus_per_node": 0, **changes}


def test_a_target_is_kept(dispatcher: InnerDispatcher) -> None:
    dispatcher.call("targets.put", target=target())
    assert "four" in [each["name"] for each in dispatcher.call("targets.list")]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": ""}, "cannot be the name"),
        ({"name": "../other"}, "cannot be the name"),
        ({"nodes": -1}, "nodes of a target must be at least 0, not -1"),
        ({"cpus_per_node": -5}, "cpus_per_node"),
        ({"gpus_per_node": -5}, "gpus_per_node"),
    ],
)
def test_a_target_that_cannot_be_is_refused(dispatcher: InnerDispatcher, changes: dict[str, Any], text: str) -> None:
    before = dispatcher.call("targets.list")
    with pytest.raises(ComputeTargetException, match=text):
        dispatcher.call("targets.put", target=target(**changes))
    assert dispatcher.call("targets.list") == before
