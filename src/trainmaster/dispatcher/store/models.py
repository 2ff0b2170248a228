"""Models: every version of every name. A deleted one keeps its row, so that its number is never used again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, select, update

from trainmaster.dispatcher.store.record_rows import RecordRows
from trainmaster.dispatcher.store.schema import models, registered_models
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.versions import next_version
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import NO_MANIFEST, NO_STAGE, ModelRecord, find_stage

ROWS = RecordRows(
    ModelRecord, frozenset({"tags", "properties", "lineage", "datasets", "resources", "facts", "aliases"})
)
_IS_KEPT = models.c.deleted_at.is_(None)
_ALIAS_TAG, _STAGE_TAG = "mlflow.alias.", "mlflow.stage"
"""Tags by which jobs give aliases and stages to versions."""


class Models(Repository):
    """The registered models of a workspace."""

    @writes
    def register(self, connection: Connection, model: ModelRecord) -> ModelRecord:
        """Keep a model as the next version of its name; a model that is registered already stays as it is."""
        known = self.get_by_key(model.key)
        if known is not None:
            return known
        now = now_in_milliseconds()
        version = next_version(connection, models, model.name)
        numbered = replace(model, version=version, created_at=now, modified_at=now)
        connection.execute(insert(models).values(**ROWS.columns_of(numbered)))
        touch_name(connection, model.name, now)
        if any(map(_is_mark, model.tags)):
            self.set_quietly(model.name, version, tags=self._take_marks(model.name, version, model.tags))
            return self.get(model.name, version) or numbered
        return numbered

    @reads
    def get_by_key(self, connection: Connection, key: str) -> ModelRecord | None:
        """The model of this registration, even if it has been deleted."""
        row = connection.execute(select(models).where(models.c.key == key)).mappings().one_or_none()
        return None if row is None else ROWS.record_of(row)

    @reads
    def get(self, connection: Connection, name: str, version: int) -> ModelRecord | None:
        """The model with this name and version."""
        chosen = select(models).where(_IS_KEPT, models.c.name == name, models.c.version == version)
        row = connection.execute(chosen).mappings().one_or_none()
        return None if row is None else ROWS.record_of(row)

    @reads
    def find(self, connection: Connection, /, **equal: Any) -> list[ModelRecord]:
        """The models whose columns equal these values, newest first."""
        statement = select(models).where(_IS_KEPT, *(models.c[name] == value for name, value in equal.items()))
        rows = connection.execute(statement.order_by(models.c.seq.desc())).mappings()
        return [ROWS.record_of(row) for row in rows]

    @writes
    def update(self, connection: Connection, /, name: str, version: int, **values: Any) -> None:
        """Set fields of a model. Tags that stand for aliases and a stage become those."""
        if "tags" in values:
            values["tags"] = self._take_marks(name, version, values["tags"])
        connection.execute(_update_one(name, version).values(**ROWS.encode(values), modified_at=now_in_milliseconds()))

    @writes
    def relabel(
        self,
        connection: Connection,
        model: ModelRecord,
        tags: Mapping[str, str],
        removed_tags: Iterable[str],
        properties: Mapping[str, str],
        facts: Mapping[str, Any],
    ) -> None:
        """Add tags, properties and facts and remove tags, all or nothing; an existing property cannot change."""
        columns = select(models.c.tags, models.c.properties, models.c.facts)
        here = (models.c.name == model.name) & (models.c.version == model.version)
        row = connection.execute(columns.where(here)).one()
        old_tags, old_properties, old_facts = (json.loads(text) for text in row)
        _refuse_changed_properties(model, old_properties, properties)
        removed = set(removed_tags)
        self._drop_marks(model.name, model.version, removed)
        self.update(
            model.name,
            model.version,
            tags={name: value for name, value in {**old_tags, **tags}.items() if name not in removed},
            properties={**old_properties, **properties},
            facts={**old_facts, **facts},
        )

    @writes
    def delete(self, connection: Connection, name: str, version: int) -> None:
        """Hide a model for good."""
        now = now_in_milliseconds()
        connection.execute(_update_one(name, version).values(deleted_at=now))
        touch_name(connection, name, now)

    @reads
    def find_manifests(self, connection: Connection) -> set[str]:
        """The digests of the contents that models have."""
        return set(connection.execute(select(models.c.manifest).where(_IS_KEPT)).scalars()) - {NO_MANIFEST}

    # What MLflow's clients change

    @writes
    def set_quietly(self, connection: Connection, /, name: str, version: int, **values: Any) -> None:
        """Set fields of a model, but not the time of its last change."""
        connection.execute(_update_one(name, version).values(**ROWS.encode(values)))

    @writes
    def set_alias(self, connection: Connection, name: str, alias: str, version: int) -> None:
        """Give an alias to a version of a name, and take it from the others."""
        self.remove_alias(name, alias)
        record = self.get(name, version)
        if record is not None:
            self.set_quietly(name, version, aliases=sorted({*record.aliases, alias}))

    @writes
    def remove_alias(self, connection: Connection, name: str, alias: str) -> None:
        """Take an alias from whatever version has it."""
        for record in self.find(name=name):
            if alias in record.aliases:
                self.set_quietly(name, record.version, aliases=[each for each in record.aliases if each != alias])

    @writes
    def set_stage(self, connection: Connection, name: str, version: int, stage: str, others: str = "") -> None:
        """Set the stage of a version; with `others`, that of all other versions in the same stage."""
        now = now_in_milliseconds()
        if others:
            alike = update(models).where(_IS_KEPT, models.c.name == name, models.c.stage == stage)
            connection.execute(alike.where(models.c.version != version).values(stage=others, modified_at=now))
        connection.execute(_update_one(name, version).values(stage=stage, modified_at=now))
        touch_name(connection, name, now)

    def _take_marks(self, name: str, version: int, tags: Mapping[str, str]) -> dict[str, str]:
        """The tags without those that stand for aliases and a stage, which are set."""
        for tag in tags:
            if tag.startswith(_ALIAS_TAG):
                self.set_alias(name, tag.removeprefix(_ALIAS_TAG), version)
        if _STAGE_TAG in tags:
            self.set_stage(name, version, find_stage(str(tags[_STAGE_TAG])) or NO_STAGE)
        return {tag: value for tag, value in tags.items() if not _is_mark(tag)}

    def _drop_marks(self, name: str, version: int, tags: Iterable[str]) -> None:
        for tag in tags:
            if tag.startswith(_ALIAS_TAG):
                self.remove_alias(name, tag.removeprefix(_ALIAS_TAG))
            elif tag == _STAGE_TAG:
                self.set_stage(name, version, NO_STAGE)


def now_in_milliseconds() -> float:
    """The time in seconds, without what is shorter than a millisecond: MLflow's clients compare and sort by it."""
    return int(time.time() * 1000) / 1000


def touch_name(connection: Connection, name: str, now: float) -> None:
    """Say that a name has changed. A name that is not there is created."""
    here = registered_models.c.name == name
    if connection.execute(update(registered_models).where(here).values(modified_at=now)).rowcount == 0:
        new = {"name": name, "description": "", "tags": "{}", "created_at": now, "modified_at": now}
        connection.execute(insert(registered_models).values(**new))


def _is_mark(tag: str) -> bool:
    return tag == _STAGE_TAG or tag.startswith(_ALIAS_TAG)


def _update_one(name: str, version: int) -> Any:
    return update(models).where(_IS_KEPT, models.c.name == name, models.c.version == version)


def _refuse_changed_properties(model: ModelRecord, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name, value in new.items():
        if old.get(name, value) != value:
            raise UserErrorException(
                f"property '{name}' of model {model.name}:{model.version} is '{old[name]}' already",
                cause="Properties cannot be changed once they are there.",
                hint="Use a tag for what changes.",
            )
