"""The tasks of the dispatcher: an error in one of them ends neither it nor the others."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from trainmaster.dispatcher.assembly import assemble
from trainmaster.dispatcher.runs.driver import RunDriver
from trainmaster.dispatcher.store import Store
from trainmaster.shared import tasks
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import RunRecord, Status


def test_a_run_whose_task_dies_is_taken_up_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "FIRST_PAUSE", 0.001)
    seen: list[Status] = []

    async def drive(driver: RunDriver) -> None:
        seen.append(driver._state.record.status)
        driver._context.store.runs.move(driver.run_id, Status.PREPARING if len(seen) == 1 else Status.CANCELED, at=2.0)
        if len(seen) == 1:
            raise RuntimeError("a fault of ours")

    monkeypatch.setattr(RunDriver, "drive", drive)

    async def run(store: Store) -> None:
        dispatcher = assemble(WorkspaceFolder(tmp_path), store)
        dispatcher.runs.take(store.runs.add(RunRecord("run", "e", Status.NOT_STARTED, 1.0, target="local", spec="{}")))
        async with asyncio.timeout(60):
            await dispatcher.runs.wait_until_left("run")
        await dispatcher.close()

    store = Store.create(tmp_path / "store.db")
    with caplog.at_level(logging.ERROR, "trainmaster.shared.tasks"):
        asyncio.run(run(store))
    store.close()
    assert seen == [Status.NOT_STARTED, Status.PREPARING]
    assert "the task 'run run' failed" in caplog.text and "a fault of ours" in caplog.text
