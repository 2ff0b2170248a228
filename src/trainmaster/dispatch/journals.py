"""Brings what jobs wrote to their journals into the store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainmaster.folders import RunFolder
from trainmaster.store import Store
from trainmaster.store.ingest import Batch

# One transaction takes this much, so that the dispatcher answers others in between.
_CHUNK_BYTES = 512 * 1024
# A line longer than this is no record of ours.
_LONGEST_LINE = 64 * 1024 * 1024


class Ingest:
    """Knows how far each journal was read; the store keeps the same, guarded, so nothing is read twice."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offsets: dict[str, dict[str, int]] = {}

    def begin(self, run_id: str) -> None:
        """A new run, of which the store has nothing yet."""
        self._offsets[run_id] = {}

    def step(self, run_id: str, folder: RunFolder) -> bool:
        """Takes one chunk of every journal that has grown; whether there may be more."""
        offsets = self._offsets.get(run_id)
        if offsets is None:
            offsets = self._offsets[run_id] = self._store.journal_offsets(run_id)
        more = False
        for journal in _journals(folder.journals):
            start = offsets.get(journal.name, 0)
            if os.stat(journal).st_size <= start:
                continue
            end, records = read_chunk(journal, start)
            if end == start:
                continue
            if not self._store.ingest(run_id, journal.name, start, end, records):
                self._offsets[run_id] = self._store.journal_offsets(run_id)
                return True
            offsets[journal.name] = end
            more = more or os.stat(journal).st_size > end
        return more

    def rest(self, run_id: str, folder: RunFolder) -> list[Batch] | None:
        """All that the journals of a run still have; None if that is more than one transaction should take."""
        offsets = self._offsets.get(run_id)
        if offsets is None:
            offsets = self._offsets[run_id] = self._store.journal_offsets(run_id)
        found: list[Batch] = []
        for journal in _journals(folder.journals):
            start, size = offsets.get(journal.name, 0), os.stat(journal).st_size
            if size - start > _CHUNK_BYTES // 4:
                return None
            end, records = read_chunk(journal, start) if size > start else (start, [])
            if end > start:
                found.append((journal.name, start, end, records))
        return found

    def forget(self, run_id: str) -> None:
        """Drops what is remembered of a run that has ended."""
        self._offsets.pop(run_id, None)


def read_chunk(journal: Path, start: int) -> tuple[int, list[dict[str, Any]]]:
    """The complete records from `start` on, up to a chunk's size, and where they end."""
    size = _CHUNK_BYTES
    with open(journal, "rb") as file:
        while True:
            file.seek(start)
            text = file.read(size)
            cut = text.rfind(b"\n") + 1
            if cut or len(text) < size or size > _LONGEST_LINE:
                break
            size *= 4
    return start + cut, list(_records(text[:cut]))


def _records(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.split(b"\n"):
        if not line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            # A process killed within a write leaves a torn line; its log call never returned.
            continue
        if isinstance(record, dict):
            yield record


def _journals(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [folder / name for name in names if name.endswith(".jsonl")]
