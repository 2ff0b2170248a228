"""Numbers the changes of runs, so that a client can ask what has changed since an earlier answer.

The numbers are in memory. A client that comes with a number of another dispatcher, or with one that is too old, is
told to start again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from trainmaster.shared.records import RunChange, RunChanges, RunRecord

ChangeKind = Literal["created", "state", "metrics", "labels", "deleted"]

MOST_CHANGES = 1000
"""Runs in one answer; the next answer has the others."""
_REMEMBERED = 20_000
"""Runs whose last change is remembered."""


@dataclass
class _Changed:
    """The last changes of one run."""

    number: int = 0
    status: str | None = None
    kinds: dict[ChangeKind, int] = field(default_factory=dict)
    """Kind of change to the number of the last one."""


class Changes:
    """The changes of all runs of the workspace since the dispatcher started. A listener of `Watchers`."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._dispatcher = secrets.token_hex(6)
        self._number = 0
        self._forgotten = 0
        """The number up to which changes may be missing."""
        self._runs: OrderedDict[str, _Changed] = OrderedDict()
        """By the number of the last change, oldest first."""
        self._news = asyncio.Event()

    # What happens

    def note(self, run_id: str, kind: ChangeKind, status: str | None = None) -> None:
        """Notes a change of a run."""
        self._number += 1
        changed = self._runs.setdefault(run_id, _Changed())
        changed.number = changed.kinds[kind] = self._number
        changed.status = status or changed.status
        self._runs.move_to_end(run_id)
        if len(self._runs) > self._remembered:
            _, oldest = self._runs.popitem(last=False)
            self._forgotten = oldest.number
        self._news.set()

    def run_changed(self, record: RunRecord) -> None:
        """A run is in another state."""
        self.note(record.id, "state", str(record.status))

    def run_reported(self, run_id: str) -> None:
        """Journals were looked at, which may have had nothing new."""

    # What clients ask

    def list_since(self, version: str) -> RunChanges:
        """What has changed since the answer with this version."""
        number = self._read_number(version)
        if number is None:
            return RunChanges(self._make_version(self._number), whole=False)
        newer: list[tuple[str, _Changed]] = []
        for run_id in reversed(self._runs):
            if self._runs[run_id].number <= number:
                break
            newer.append((run_id, self._runs[run_id]))
        newer = newer[::-1][:MOST_CHANGES]
        return RunChanges(
            self._make_version(newer[-1][1].number if newer else self._number),
            whole=True,
            runs=tuple(
                RunChange(run_id, tuple(kind for kind, last in each.kinds.items() if last > number), each.status)
                for run_id, each in newer
            ),
        )

    async def wait_since(self, version: str, seconds: float) -> RunChanges:
        """The same, as soon as there is a change, or when the time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            found = self.list_since(version)
            left = end - loop.time()
            if found.runs or not found.whole or left <= 0:
                return found
            if self._news.is_set():
                self._news = asyncio.Event()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                continue

    def _make_version(self, number: int) -> str:
        return f"{self._dispatcher}.{number}"

    def _read_number(self, version: str) -> int | None:
        """The number in a version; None if changes since then may be missing."""
        dispatcher, _, text = version.partition(".")
        if dispatcher != self._dispatcher or not (text.isascii() and text.isdecimal()) or len(text) > 18:
            return None
        number = int(text)
        return number if self._forgotten <= number <= self._number else None
