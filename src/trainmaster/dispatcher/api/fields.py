"""Which fields runs have, and their values: for choosing columns and completing filters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.filters import parse_field
from trainmaster.shared.records import RunFields

_MOST = 5000
_MOST_RUNS = 1000


class FieldOperations:
    """Names and values of fields."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation("runs.fields", from_store=True)
    async def list_fields(self, prefix: str = "", limit: int = 1000) -> RunFields:
        """The names of arguments, metrics, tags and properties that any run has, `limit` of each kind, by name."""
        _check_limit(limit)
        return await asyncio.to_thread(self._store.field_names.list_names, prefix, limit)

    @operation("runs.values", from_store=True)
    async def list_values(self, field: str, prefix: str = "", limit: int = 100) -> Sequence[str]:
        """The values of an argument, tag or property, or of experiment, user, target and status, in order.

        None for other fields, whose values nobody completes.
        """
        _check_limit(limit)
        return await asyncio.to_thread(self._store.field_names.list_values, parse_field(field), prefix, limit)

    @operation("runs.differing", from_store=True)
    async def find_differing(self, run_ids: list[str]) -> RunFields:
        """The names whose values are not the same in all of these runs."""
        if len(run_ids) > _MOST_RUNS:
            raise UserErrorException(f"{len(run_ids)} runs are too many to compare: {_MOST_RUNS} at most")
        return await asyncio.to_thread(self._store.field_names.find_differing, run_ids)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= _MOST:
        raise UserErrorException(f"limit must be between 1 and {_MOST}, not {limit}")
