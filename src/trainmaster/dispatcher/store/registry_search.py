"""Searching MLflow's registry: names and versions, by clauses of MLflow's filter language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Select,
    String,
    Table,
    case,
    cast,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from trainmaster.dispatcher.store.clauses import compare_number, compare_text
from trainmaster.dispatcher.store.models import ROWS as VERSION_ROWS
from trainmaster.dispatcher.store.registered_models import ROWS as NAME_ROWS
from trainmaster.dispatcher.store.schema import models, registered_models
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.shared.filters.clauses import Clause, SortKey
from trainmaster.shared.model_addresses import ADDRESS_TOP
from trainmaster.shared.records import ModelRecord, RegisteredModelRecord

PROMPT_TAG = "mlflow.prompt.is_prompt"
"""MLflow keeps prompts in the registry; this tag tells them from models. Searches leave them out."""

_NAME_ORDERS = {
    "name": registered_models.c.name,
    "creation_timestamp": registered_models.c.created_at,
    "last_updated_timestamp": registered_models.c.modified_at,
}
_VERSION_ORDERS = {
    "name": models.c.name,
    "version_number": models.c.version,
    "creation_timestamp": models.c.created_at,
    "last_updated_timestamp": models.c.modified_at,
}
# A version that was registered without an address has one of its own.
_SOURCE = case(
    (models.c.source == "", literal(ADDRESS_TOP) + models.c.name + "/" + cast(models.c.version, String)),
    else_=models.c.source,
)
_VERSION_TEXTS: dict[str, ColumnElement[Any]] = {
    "name": models.c.name,
    "run_id": models.c.run_id,
    "source_path": _SOURCE,
}


class RegistrySearch(Repository):
    """Finds names and versions."""

    @reads
    def find_names(
        self, connection: Connection, clauses: Sequence[Clause], order: Sequence[SortKey], most: int, offset: int
    ) -> list[RegisteredModelRecord]:
        """The names that match all clauses; by name where the order leaves it open."""
        dialect = connection.dialect
        found = select(registered_models)
        for clause in _leave_out_prompts(clauses):
            if clause.entity == "tag":
                found = found.where(_has_tag(registered_models.c.tags, clause, dialect))
            else:
                found = found.where(compare_text(registered_models.c.name, clause, dialect))
        if not _wants_prompts(clauses):
            found = found.where(~_is_prompt(registered_models.c.tags, dialect))
        found = _sort(found, order, _NAME_ORDERS, registered_models)
        rows = connection.execute(found.limit(most).offset(offset)).mappings()
        return [NAME_ROWS.record_of(row) for row in rows]

    @reads
    def find_versions(
        self, connection: Connection, clauses: Sequence[Clause], order: Sequence[SortKey], most: int, offset: int
    ) -> list[ModelRecord]:
        """The versions that match all clauses; by name and newest version where the order leaves it open."""
        dialect = connection.dialect
        found = select(models).where(models.c.deleted_at.is_(None))
        for clause in _leave_out_prompts(clauses):
            if clause.entity == "tag":
                found = found.where(_has_tag(models.c.tags, clause, dialect))
            elif clause.key == "version_number":
                found = found.where(compare_number(models.c.version, clause))
            else:
                found = found.where(compare_text(_VERSION_TEXTS[clause.key], clause, dialect))
        if not _wants_prompts(clauses):
            found = found.where(~_is_prompt(models.c.tags, dialect))
        found = _sort(found, order, _VERSION_ORDERS, models)
        rows = connection.execute(found.limit(most).offset(offset)).mappings()
        return [VERSION_ROWS.record_of(row) for row in rows]

    @reads
    def find_versions_of(self, connection: Connection, names: Sequence[str]) -> dict[str, list[ModelRecord]]:
        """All versions of these names, the first one first."""
        chosen = select(models).where(models.c.deleted_at.is_(None), models.c.name.in_(names))
        found: dict[str, list[ModelRecord]] = {name: [] for name in names}
        for row in connection.execute(chosen.order_by(models.c.version)).mappings():
            found[row["name"]].append(VERSION_ROWS.record_of(row))
        return found


def _sort(found: Select[Any], order: Sequence[SortKey], columns: dict[str, Column[Any]], table: Table) -> Select[Any]:
    for key in order:
        column = columns[key.key]
        found = found.order_by(column.desc() if key.descending else column.asc())
    given = {key.key for key in order}
    if "name" not in given:
        found = found.order_by(table.c.name.asc())
    if "version" in table.c and "version_number" not in given:
        found = found.order_by(table.c.version.desc())
    return found


def _has_tag(tags: Column[Any], clause: Clause, dialect: Dialect) -> ColumnElement[bool]:
    """Whether there is a tag of this key whose value matches."""
    if dialect.name == "postgresql":
        pairs = func.jsonb_each_text(cast(tags, JSONB)).table_valued("key", "value")
    else:
        pairs = func.json_each(tags).table_valued("key", "value")
    matches = compare_text(pairs.c.value, clause, dialect)
    return select(pairs.c.key).where(pairs.c.key == clause.key, matches).exists()


def _is_prompt(tags: Column[Any], dialect: Dialect) -> ColumnElement[bool]:
    # The text is looked for first: reading JSON takes longer, and hardly any model has the tag.
    return tags.contains(PROMPT_TAG) & _has_tag(tags, Clause("tag", PROMPT_TAG, "=", "true"), dialect)


def _wants_prompts(clauses: Sequence[Clause]) -> bool:
    first = next((clause for clause in clauses if _is_about_prompts(clause)), None)
    return first is not None and (first.comparator, str(first.value).lower()) in (("=", "true"), ("!=", "false"))


def _leave_out_prompts(clauses: Sequence[Clause]) -> list[Clause]:
    """The clauses without one that only says that prompts are not wanted: models do not have that tag."""
    return [clause for clause in clauses if _wants_prompts(clauses) or not _is_about_prompts(clause)]


def _is_about_prompts(clause: Clause) -> bool:
    return clause.entity == "tag" and clause.key == PROMPT_TAG
