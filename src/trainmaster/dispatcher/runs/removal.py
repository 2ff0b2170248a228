"""Deletes runs: their rows, their files, the models they have logged, and the snapshots that no other run needs.

The ids are noted first. After that, each step can be repeated: folders are set aside by a rename, then rows are deleted
in batches, and files last. A new dispatcher finishes what an earlier one began.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.disk_use import measure_folders
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.shared import beneath
from trainmaster.shared.records import TERMINAL, RunQuery, RunRecord
from trainmaster.snapshots.collect import collect

log = logging.getLogger("trainmaster.dispatch")

_NOTE = "runs.removing"
# How many runs are noted as done at a time, and how many rows of runs are deleted in one transaction.
_GROUP = 100
_BATCH = 200
_PAGE = 1000
_ASIDE = ".removed"
# Temporary errors: the runs stay noted and are tried again.
_SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def old_runs(newest_first: Iterable[RunRecord], ended_before: float | None, keep: int) -> Iterator[RunRecord]:
    """Runs that ended before a time, except the `keep` newest of each experiment."""
    seen: dict[str, int] = {}
    for record in newest_first:
        seen[record.experiment] = seen.get(record.experiment, 0) + 1
        ended_at = record.ended_at or 0.0
        if seen[record.experiment] > keep and (ended_before is None or ended_at < ended_before):
            yield record


@dataclass(frozen=True)
class Removed:
    """What was deleted, or would be."""

    run_ids: tuple[str, ...]
    """Without their children."""
    children: int
    bytes: int
    """Bytes on disk, without the space in the database, which is reused."""
    left: tuple[str, ...] = ()
    """Runs and files that could not be removed, each with the reason."""


class Removal:
    """The operations that delete runs."""

    def __init__(
        self,
        context: Context,
        wait_until_left: Callable[[str], Awaitable[None]],
        disk_was_freed: Callable[[], None] = lambda: None,
    ) -> None:
        """`wait_until_left` returns when no driver works on a run any more."""
        self._folder = context.folder
        self._store = context.store
        self._activity = context.activity
        self._changes = context.changes
        self._wait_until_left = wait_until_left
        self._disk_was_freed = disk_was_freed
        self._turn = asyncio.Lock()

    @property
    def _roots(self) -> tuple[Path, Path]:
        return self._folder.runs, self._folder.logged_models

    @operation("runs.old")
    async def old(
        self, ended_before: float | None, keep: int, experiment: str | None = None, statuses: Sequence[str] = ()
    ) -> dict[str, list[str]]:
        """`old`: runs without a parent that ended before a time, except the newest of each experiment. `models`: such
        runs that are kept because models were registered from them or their children. `used`: such runs that are kept
        because an active sweep continues them.
        """
        return await asyncio.to_thread(self._old, ended_before, keep, experiment, statuses)

    def _old(
        self, ended_before: float | None, keep: int, experiment: str | None, statuses: Sequence[str]
    ) -> dict[str, list[str]]:
        wanted = tuple(str(status) for status in TERMINAL if not statuses or status in statuses)
        found: dict[str, list[str]] = {"old": [], "models": [], "used": []}
        with_models, used = self._store.removal.find_runs_with_models(), self._store.removal.find_continued_runs()
        for record in old_runs(self._list_ended(experiment, wanted), ended_before, keep):
            family = {run_id for run_id, _ in self._store.removal.list_family(record.id)}
            kind = "models" if family & with_models else "used" if family & used else "old"
            found[kind].append(record.id)
        return found

    def _list_ended(self, experiment: str | None, statuses: tuple[str, ...]) -> Iterator[RunRecord]:
        before: int | None = None
        while True:
            query = RunQuery(experiment=experiment, statuses=statuses, limit=_PAGE, before_seq=before, archived=True)
            page = self._store.runs.find(query)
            yield from page
            if len(page) < _PAGE:
                return
            before = page[-1].seq

    @operation("runs.delete")
    async def delete(self, run_ids: list[str], dry_run: bool = False) -> Removed:
        """Deletes runs that have ended, with their children; checks all of them before it deletes the first.

        A run that cannot be deleted stays complete and is in `left`, with the reason.
        """
        wanted = list(dict.fromkeys(run_ids))
        async with self._turn:
            with self._activity.working():
                used = await asyncio.to_thread(self._store.removal.find_continued_runs)
                families = {run_id: await self._family(run_id, used) for run_id in wanted}
                if dry_run:
                    return _summarize(families, frozenset(), await asyncio.to_thread(self._measure, families), ())
                # A run that is already deleted, because a client repeats its request, is not noted.
                self._store.facts.put(_NOTE, [*self._read_note(), *(each for each in wanted if families[each])])
                done = await self._finish()
        for run_id, family in families.items():
            for each in family if run_id not in done.kept else ():
                self._changes.note(each, "deleted")
        self._disk_was_freed()
        return _summarize(families, done.kept, done.freed, done.left)

    async def resume(self) -> None:
        """Finishes deletions that an earlier dispatcher began."""
        if not self._read_note() and not any((root / _ASIDE).exists() for root in self._roots):
            return
        try:
            async with self._turn:
                with self._activity.working():
                    await self._finish()
        except (WorkspaceException, OSError) as error:
            # Mostly a full disk. The runs stay noted.
            log.warning("some runs could not be deleted yet: %s", error)

    def _read_note(self) -> list[str]:
        return list(self._store.facts.get(_NOTE) or ())

    async def _family(self, run_id: str, continued: Collection[str]) -> list[str]:
        """The run and all its descendants, if they may be deleted; empty if the run is already deleted."""
        record = self._store.runs.get(run_id)
        if record is None:
            return []
        if record.parent_id is not None:
            raise UserErrorException(
                f"run {run_id} is a child of run {record.parent_id} and is deleted with it",
                hint=f"Delete {record.parent_id}, with all its children.",
            )
        family = await asyncio.to_thread(self._store.removal.list_family, run_id)
        going = next((each for each, status in family if status not in TERMINAL), None)
        if going is not None:
            raise UserErrorException(f"run {going} has not ended", hint=f"End it first: 'trainmaster cancel {going}'.")
        used = {each for each, _ in family} & set(continued)
        if used:
            raise UserErrorException(
                f"an active sweep uses the files of {', '.join(sorted(used)[:3])}",
                hint="Wait for it, or cancel it.",
            )
        for each, _ in family:
            await self._wait_until_left(each)
        return [each for each, _ in family]

    async def _finish(self) -> _Done:
        """Deletes all noted runs. A run that cannot be deleted is dropped from the note, so that it blocks no other."""
        noted = self._read_note()
        kept: dict[str, str] = {}
        while noted:
            group, noted = noted[:_GROUP], noted[_GROUP:]
            kept |= await asyncio.to_thread(self._remove, group)
            log.info("removed runs: %s", ", ".join(each for each in group if each not in kept))
            self._store.facts.put(_NOTE, noted)
        for run_id, reason in kept.items():
            log.warning("run %s cannot be removed: %s", run_id[:300], reason)
        left = [f"run {run_id}: {reason}" for run_id, reason in kept.items()]
        freed = 0
        for root in self._roots:
            freed += await asyncio.to_thread(beneath.remove_tree, root, _ASIDE, left)
        freed += await asyncio.to_thread(self._remove_snapshots)
        return _Done(frozenset(kept), freed, tuple(left))

    def _remove_snapshots(self) -> int:
        return collect(self._folder.path, self._store.removal.find_needed_snapshots())

    def _remove(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Sets folders aside and deletes rows; returns the runs that have to stay, each with the reason."""
        doomed: list[str] = []
        kept: dict[str, str] = {}
        for run_id in run_ids:
            family = [each for each, _ in self._store.removal.list_family(run_id)]
            try:
                # A run that was deleted from the store just before a kill may have left its folder.
                self._set_aside(family or [run_id])
            except OSError as error:
                if error.errno in _SHORTAGES:
                    raise
                kept[run_id] = f"{error.filename}: {error.strerror}" if error.filename else str(error)
                continue
            # Children first.
            doomed += reversed(family)
        for start in range(0, len(doomed), _BATCH):
            batch = doomed[start : start + _BATCH]
            while self._store.removal.delete_points(batch):
                pass
            self._store.removal.delete_runs(batch)
        return kept

    def _set_aside(self, run_ids: Sequence[str]) -> None:
        """Renames the folders of a run and its descendants, all or none, to names that are always short enough."""
        models = self._store.removal.find_logged_models(run_ids)
        names = [(self._folder.runs, run_id) for run_id in filter(self._path, run_ids)]
        names += [(self._folder.logged_models, model_id) for model_id in models]
        for root in {root for root, _ in names}:
            (root / _ASIDE).mkdir(parents=True, exist_ok=True)
        moved: list[tuple[Path, str, str]] = []
        try:
            for root, name in names:
                place = f"{_ASIDE}/{os.urandom(16).hex()}"
                with contextlib.suppress(FileNotFoundError):
                    beneath.rename(root, name, place)
                    moved.append((root, name, place))
        except OSError:
            for root, name, place in moved:
                beneath.rename(root, place, name)
            raise

    def _measure(self, families: Mapping[str, Sequence[str]]) -> int:
        run_ids = [each for family in families.values() for each in family]
        models = self._store.removal.find_logged_models(run_ids)
        return measure_folders([*filter(None, map(self._path, run_ids)), *map(self._folder.find_logged_model, models)])

    def _path(self, run_id: str) -> Path | None:
        """The folder of a run; None for an id of an earlier release that cannot be a folder name."""
        return self._folder.run(run_id).path if is_plain(run_id) else None


@dataclass(frozen=True)
class _Done:
    kept: frozenset[str]
    freed: int
    left: tuple[str, ...]


def _summarize(
    families: Mapping[str, Sequence[str]], kept: Collection[str], freed: int, left: tuple[str, ...]
) -> Removed:
    gone = {run_id: family for run_id, family in families.items() if run_id not in kept}
    return Removed(tuple(gone), sum(len(family) - 1 for family in gone.values() if family), freed, left)
