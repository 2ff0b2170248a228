"""The journals of runs are read beside the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainmaster.dispatcher.assembly import assemble
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.journals import Journals
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import RunRecord, Status


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.create(tmp_path / "store.db")
    for name in ("large", "small"):
        store.runs.add(RunRecord(name, "e", Status.RUNNING, 1.0, target="local"))
    yield store
    store.close()


def write(folder: WorkspaceFolder, run_id: str, names: int) -> Path:
    place = folder.run(run_id).journals
    place.mkdir(parents=True)
    lines = (json.dumps({"k": "metric", "n": f"m{n}", "v": n, "t": 1.0}) for n in range(names))
    (place / "0-1-a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return place / "0-1-a.jsonl"


def test_journals_are_read_beside_the_event_loop(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with very many metrics keeps neither clients nor other runs waiting."""
    folder = WorkspaceFolder(tmp_path)
    write(folder, "large", 20_000)
    write(folder, "small", 1)
    threads: set[int] = set()
    ingest = Journals.ingest

    def note_thread(self: Journals, *args: Any) -> bool:
        threads.add(threading.get_ident())
        return ingest(self, *args)

    monkeypatch.setattr(Journals, "ingest", note_thread)

    async def run() -> list[str]:
        dispatcher = assemble(folder, store)
        ended: list[str] = []

        async def bring_in(run_id: str) -> None:
            await dispatcher.updates.bring_in(run_id)
            ended.append(run_id)

        await asyncio.gather(bring_in("large"), bring_in("small"))
        await dispatcher.close()
        return ended

    assert asyncio.run(run()) == ["small", "large"]
    assert threads and threading.get_ident() not in threads
    assert [len(store.metrics.summarize(run_id)) for run_id in ("large", "small")] == [20_000, 1]


def test_what_was_written_before_is_readable_after_however_much_is_written_meanwhile(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = WorkspaceFolder(tmp_path)
    journal = write(folder, "large", 1000)
    ingest = Journals.ingest

    def write_more(self: Journals, *args: Any) -> bool:
        with open(journal, "a") as file:
            file.write(json.dumps({"k": "metric", "n": "more", "v": "x" * 2**16, "t": 1.0}) + "\n")
        return ingest(self, *args)

    monkeypatch.setattr(Journals, "ingest", write_more)

    async def run() -> None:
        dispatcher = assemble(folder, store)
        async with asyncio.timeout(60):
            await dispatcher.updates.bring_in("large")
        await dispatcher.close()

    asyncio.run(run())
    names = {metric.name for metric in store.metrics.summarize("large")}
    assert names >= {f"m{n}" for n in range(1000)}
