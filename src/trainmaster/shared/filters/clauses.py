"""What a filter or an order of MLflow's says: a list of clauses, of which all have to hold. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Entity = Literal["attribute", "metric", "parameter", "tag", "dataset"]


@dataclass(frozen=True)
class Clause:
    """One condition. A thing without the key does not fulfil it, whatever the comparator; except for IS NULL."""

    entity: Entity
    key: str
    comparator: str
    """In capitals: = != < <= > >= LIKE ILIKE IN, NOT IN, IS NULL, IS NOT NULL."""
    value: str | int | float | tuple[str, ...] | None = None
    """A tuple for a list; None for IS NULL and IS NOT NULL."""


@dataclass(frozen=True)
class SortKey:
    """What things are sorted by. Those without a value come last, in whatever direction."""

    entity: Entity
    key: str
    descending: bool = False
