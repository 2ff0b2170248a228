"""Records as rows: one column per field, some of them as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic, TypeVar

from sqlalchemy import RowMapping

from trainmaster.dispatcher.store.values import clean, dump
from trainmaster.shared.serialization import from_plain, to_plain

T = TypeVar("T")


@dataclass(frozen=True)
class RecordRows(Generic[T]):
    """How records of one class lie in a table."""

    kind: type[T]
    json_fields: frozenset[str]

    def columns_of(self, record: T) -> dict[str, Any]:
        """The column values of a record."""
        return self.encode({name: getattr(record, name) for name in self._names})

    def encode(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The column values for some fields, by name."""
        return {name: self._encode_one(name, value) for name, value in values.items()}

    def record_of(self, row: RowMapping) -> T:
        """The record in a row of the whole table."""
        plain = {name: json.loads(row[name]) if name in self.json_fields else row[name] for name in self._names}
        return from_plain(self.kind, plain)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self.kind))  # type: ignore[arg-type]

    def _encode_one(self, name: str, value: Any) -> Any:
        if name in self.json_fields:
            return clean(dump(to_plain(value)))
        return clean(str(value)) if isinstance(value, str) else value
