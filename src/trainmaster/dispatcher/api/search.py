"""Searching runs."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.active import ActiveRuns
from trainmaster.dispatcher.runs.changes import Changes
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.run_columns import check_columns
from trainmaster.dispatcher.store.search import Search
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.filters import parse_filter, parse_order
from trainmaster.shared.records import RunChanges, RunPage

MOST_ROWS = 1000
MOST_COLUMNS = 200
MOST_SKIPPED = 5_000_000
COLUMNS = ("id", "experiment", "number", "name", "status", "created", "started", "ended", "target", "user", "tags")
"""The columns of a search that asks for none."""

_WAITING = "waiting_for"
_LONGEST_WAIT = 60.0


_OTHER_SOURCES = re.compile(r"now|today|yesterday|-\d|duration|waiting_for")
"""In the arguments of a search whose result may depend on the time, or on what only the scheduler knows."""


def _is_from_store(args: Mapping[str, Any], result: Any) -> bool:
    return not _OTHER_SOURCES.search(str([args.get(name) for name in ("filter", "order", "columns")]).lower())


class SearchOperations:
    """Searching runs by anything that is known of them, and following their changes."""

    def __init__(self, store: Store, runs: ActiveRuns, changes: Changes) -> None:
        self._store = store
        self._runs = runs
        self._changes = changes

    @operation("runs.search", from_store=_is_from_store)
    async def search(
        self,
        filter: str = "",
        order: str = "",
        columns: list[str] | None = None,
        limit: int = 100,
        cursor: str = "",
        children: bool = False,
        total: bool = False,
        archived: bool = False,
        skip: int = 0,
    ) -> RunPage:
        """A page of the runs that match a filter.

        `order` is a field, with `desc` for descending; empty means newest first. `columns` are fields. The `cursor`
        of an answer gives the next page of the same search. `children` finds child runs too, `archived` those that
        were archived, `total` counts all matches, and `skip` leaves out so many of the first, for a table that is
        scrolled far. docs/guide/search.md describes filters and fields.
        """
        if not 1 <= limit <= MOST_ROWS:
            raise UserErrorException(f"limit must be between 1 and {MOST_ROWS}, not {limit}")
        if not 0 <= skip <= MOST_SKIPPED:
            raise UserErrorException(f"skip must be between 0 and {MOST_SKIPPED}, not {skip}")
        asked = tuple(dict.fromkeys(columns or COLUMNS))
        if len(asked) > MOST_COLUMNS:
            raise UserErrorException(f"a search has at most {MOST_COLUMNS} columns, not {len(asked)}")
        check_columns(asked)
        now = time.time()
        key = repr((filter.strip(), order.strip(), children, archived))
        wanted = Search(
            parse_filter(filter, now),
            parse_order(order) if order.strip() else None,
            # The reason to wait is known by the id of a run.
            asked if _WAITING not in asked else (*asked, "id", "status"),
            limit,
            cursor,
            key,
            children,
            total,
            archived,
            skip,
        )
        page = await asyncio.to_thread(self._store.search.find, wanted, now)
        if _WAITING not in asked:
            return page
        return replace(page, rows=tuple(self._with_reason(row, asked) for row in page.rows))

    @operation("workspace.changes")
    async def list_changes(self, since: str = "", seconds: float = 0.0) -> RunChanges:
        """The runs that have changed since an earlier answer, after at most `seconds` if there are none yet.

        Ask without `since` first, then read what you want to show, then follow it: each answer has the `version` to
        pass as `since` next. If `whole` is false, changes may be missing, and everything has to be read again.
        """
        # Written so that a NaN, which Python's JSON has, does not wait.
        wait = min(seconds, _LONGEST_WAIT) if seconds > 0 else 0.0
        if wait:
            self._runs.follow(wait)
        return await self._changes.wait_since(since, wait)

    def _with_reason(self, row: Any, asked: tuple[str, ...]) -> dict[str, Any]:
        reason = self._runs.find_reason(row["id"], row["status"]) or row[_WAITING]
        return {name: reason if name == _WAITING else row[name] for name in asked}
