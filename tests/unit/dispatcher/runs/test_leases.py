"""Runs whose program is on another machine end when it does not renew their lease any more."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import until
from tests.inner_dispatcher import InnerDispatcher

from trainmaster.dispatcher.runs.owners import Lease
from trainmaster.shared import owner
from trainmaster.shared.owner import lease_of, program_with_lease
from trainmaster.shared.records import RunRecord, Status
from trainmaster.shared.serialization import to_plain


def start(dispatcher: InnerDispatcher, seconds: float) -> str:
    record = RunRecord("far", "x", Status.RUNNING, time.time(), properties=program_with_lease(seconds))
    answer = dispatcher.call("runs.create", runs=[to_plain(record)])
    return str(answer[0]["id"])


def wait_for_end(dispatcher: InnerDispatcher, run_id: str) -> dict[str, Any]:
    until(lambda: dispatcher.call("runs.get", run_id=run_id)["status"] != "Running")
    return dict(dispatcher.call("runs.get", run_id=run_id))


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_SHORTEST_LEASE", 0.0)


def test_a_run_whose_lease_is_over_fails(tmp_path: Path, short_leases: None) -> None:
    dispatcher = InnerDispatcher(tmp_path)
    try:
        run = wait_for_end(dispatcher, start(dispatcher, 0.05))
        assert (run["status"], run["error"]["code"]) == ("Failed", "OwnerLost")
        # Renewing it does not bring it back.
        assert dispatcher.call("runs.renew", run_id="far", seconds=60)["status"] == "Failed"
    finally:
        dispatcher.close()


def test_a_run_that_was_completed_stays_so(tmp_path: Path, short_leases: None) -> None:
    dispatcher = InnerDispatcher(tmp_path)
    try:
        run_id = start(dispatcher, 60)
        assert dispatcher.call("runs.finish", run_id=run_id, status="Completed")["status"] == "Completed"
        assert dispatcher.call("runs.renew", run_id=run_id, seconds=0)["status"] == "Completed"
    finally:
        dispatcher.close()


def test_the_next_dispatcher_grants_the_lease_again(tmp_path: Path, short_leases: None) -> None:
    first = InnerDispatcher(tmp_path)
    start(first, 0.2)
    first.close()
    second = InnerDispatcher(tmp_path)
    try:
        assert second.call("runs.get", run_id="far")["status"] == "Running"
        second.resume()
        assert wait_for_end(second, "far")["status"] == "Failed"
    finally:
        second.close()


def test_a_renewed_lease_lasts_longer(short_leases: None) -> None:
    async def renew_twice() -> float:
        lease = Lease(0.01)
        lease.renew(0.2)
        began = time.monotonic()
        assert await lease.expire() == 0.2
        return time.monotonic() - began

    assert asyncio.run(renew_twice()) > 0.19


def test_leases_have_limits() -> None:
    assert program_with_lease(float("inf")) == {owner.LEASE: "86400"}
    assert [lease_of({owner.LEASE: text}) for text in ("1", "60", "nan", "x")] == [5.0, 60.0, 5.0, None]
    assert lease_of({}) is None
