"""The tasks of the dispatcher: an error in one of them ends neither it nor the others."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from trainmaster import tasks
from trainmaster.dispatch.life import Life
from trainmaster.dispatch.yard import Yard
from trainmaster.folders import WorkspaceFolder
from trainmaster.records import RunRecord, Status
from trainmaster.store import Store


def test_a_run_whose_task_dies_is_taken_up_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "FIRST_PAUSE", 0.001)
    seen: list[Status] = []

    async def drive(life: Life) -> None:
        seen.append(life._record.status)
        life._yard.store.move(life.run_id, Status.PREPARING if len(seen) == 1 else Status.CANCELED, at=2.0)
        if len(seen) == 1:
            raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Life, "drive", drive)

    async def run(store: Store) -> None:
        yard = Yard(WorkspaceFolder(tmp_path), store)
        yard.take(store.insert_run(RunRecord("run", "e", Status.NOT_STARTED, 1.0, target="local", spec="{}")))
        async with asyncio.timeout(60):
            await yard.until_left("run")
        await yard.close()

    store = Store.create(tmp_path / "store.db")
    with caplog.at_level(logging.ERROR, "trainmaster.tasks"):
        asyncio.run(run(store))
    store.close()
    assert seen == [Status.NOT_STARTED, Status.PREPARING]
    assert "the task 'run run' failed" in caplog.text and "a fault of ours" in caplog.text
