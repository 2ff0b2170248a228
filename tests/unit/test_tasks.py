"""Tasks in the background: an error is logged, and the work goes on."""

from __future__ import annotations

import asyncio
import logging

import pytest

from trainmaster.shared import tasks
from trainmaster.shared.tasks import start_task


@pytest.fixture(autouse=True)
def brief_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "FIRST_PAUSE", 0.001)


def test_work_that_fails_is_logged_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[int] = []

    async def work() -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise OSError("no luck")

    async def run() -> None:
        await asyncio.wait_for(start_task("reading", work), 60)

    with caplog.at_level(logging.ERROR, "trainmaster.shared.tasks"):
        asyncio.run(run())
    assert len(attempts) == 3
    assert [record.getMessage().split(" and ")[0] for record in caplog.records] == ["the task 'reading' failed"] * 2
    assert all(record.exc_info for record in caplog.records)


def test_a_task_that_is_cancelled_is_not_started_again() -> None:
    async def run() -> list[int]:
        begun: list[int] = []
        started = asyncio.Event()

        async def work() -> None:
            begun.append(1)
            started.set()
            await asyncio.Event().wait()

        task = start_task("waiting", work)
        await asyncio.wait_for(started.wait(), 60)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        return begun

    assert asyncio.run(run()) == [1]
