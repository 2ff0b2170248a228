"""Metrics for pages of charts: many metrics of many runs in one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import TERMINAL, Curve, RunOutline, Sparkline

MOST_RUNS = 500
MOST_NAMES = 1000
MOST_POINTS = 10_000
_MOST_IN_LINE = 100


class ChartOperations:
    """Curves, sparklines, and runs that are compared."""

    def __init__(self, store: Store, updates: RunUpdates) -> None:
        self._store = store
        self._updates = updates

    @operation("runs.curves")
    async def read_curves(
        self,
        run_ids: list[str],
        names: list[str] | None = None,
        max_points: int = 500,
        since: Mapping[str, Mapping[str, int]] | None = None,
        by_rank: bool = False,
        until: Mapping[str, Mapping[str, int]] | None = None,
    ) -> list[Curve]:
        """The numbers of several metrics (without `names` all) of several runs; runs and metrics that are not there
        are left out.

        A curve that is longer than `max_points` is thinned; its smallest and largest values stay. A live page passes
        the `count` of each curve as `since`, by run and metric, and gets only what is new. `since` and `until` together
        ask for a part of a curve, which has more of its points then. With `by_rank`, each rank has a curve of its own.
        """
        if not 2 <= max_points <= MOST_POINTS:
            raise UserErrorException(f"max_points must be between 2 and {MOST_POINTS}, not {max_points}")
        _check_count("runs", run_ids, MOST_RUNS)
        _check_count("names", names or (), MOST_NAMES)
        await self._bring_in(run_ids)
        read = partial(self._store.curves.read, run_ids, names, max_points, since or {}, by_rank, until)
        return await asyncio.to_thread(read)

    @operation("runs.sparklines")
    async def sketch_curves(self, run_ids: list[str], names: list[str], points: int = 30) -> list[Sparkline]:
        """A few numbers of several metrics of several runs: small lines for a page of a table."""
        if not 1 <= points <= _MOST_IN_LINE:
            raise UserErrorException(f"points must be between 1 and {_MOST_IN_LINE}, not {points}")
        _check_count("runs", run_ids, MOST_RUNS)
        _check_count("names", names, 20)
        await self._bring_in(run_ids)
        return await asyncio.to_thread(self._store.curves.sketch, run_ids, names, points)

    @operation("runs.outlines")
    async def outline_runs(self, run_ids: list[str]) -> list[RunOutline]:
        """Several runs with the last, smallest and largest values of their metrics; unknown runs are left out."""
        _check_count("runs", run_ids, MOST_RUNS)
        await self._bring_in(run_ids)
        return await asyncio.to_thread(self._read_outlines, run_ids)

    def _read_outlines(self, run_ids: list[str]) -> list[RunOutline]:
        records = self._store.runs.get_many(run_ids)
        return [RunOutline(each, tuple(self._store.metrics.summarize(each.id))) for each in records]

    async def _bring_in(self, run_ids: list[str]) -> None:
        for record in await asyncio.to_thread(self._store.runs.get_many, run_ids):
            # The journals of a run that has ended are in the store.
            if record.status not in TERMINAL:
                await self._updates.bring_in(record.id)


def _check_count(what: str, given: object, most: int) -> None:
    count = len(given) if isinstance(given, list | tuple) else 0
    if count > most:
        raise UserErrorException(f"{count} {what} are too many for one answer: {most} at most")
