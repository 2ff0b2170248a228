"""Experiments as MLflow's clients know them: by the number of their row."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from trainmaster.dispatcher.store.schema import experiments, runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.transactions import Repository, reads_once, writes
from trainmaster.dispatcher.store.values import clean, dump, dump_collection

DEFAULT_SEQ = 0
DEFAULT_NAME = "Default"


@dataclass(frozen=True)
class MlflowExperiment:
    """An experiment with everything MLflow shows of it."""

    seq: int
    name: str
    created_at: float
    modified_at: float
    archived_at: float | None = None
    artifact_location: str = ""
    """Empty for the workspace itself."""
    tags: Mapping[str, str] = field(default_factory=dict)


EXPERIMENT_COLUMNS = (
    experiments.c.seq,
    experiments.c.name,
    experiments.c.created_at,
    experiments.c.modified_at,
    experiments.c.archived_at,
    experiments.c.artifact_location,
    experiments.c.tags,
)
"""What `experiment_of` reads."""

_BY_SEQ = PreparedSelect(select(*EXPERIMENT_COLUMNS).where(experiments.c.seq == bindparam("seq")))
_BY_NAME = PreparedSelect(select(*EXPERIMENT_COLUMNS).where(experiments.c.name == bindparam("name")))


def experiment_of(row: Sequence[Any]) -> MlflowExperiment:
    """The experiment in a row of `EXPERIMENT_COLUMNS`."""
    seq, name, created_at, modified_at, archived_at, location, tags = row
    found = {key: text_of_label(value) for key, value in json.loads(tags).items()} if tags else {}
    modified = created_at if modified_at is None else modified_at
    return MlflowExperiment(seq, name, created_at, modified, archived_at, location, found)


def text_of_label(value: Any) -> str:
    """The value of a tag as text, as MLflow knows only those. Tags of v1 may be null or any JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else dump(value)


class MlflowExperiments(Repository):
    """The experiments of a workspace, for MLflow's clients."""

    @reads_once
    def find(self, connection: Connection, seq: int) -> MlflowExperiment | None:
        """The experiment with this number."""
        row = _BY_SEQ.row(connection, seq=seq)
        return experiment_of(row) if row else None

    @reads_once
    def find_by_name(self, connection: Connection, name: str) -> MlflowExperiment | None:
        """The experiment with this name."""
        row = _BY_NAME.row(connection, name=clean(name))
        return experiment_of(row) if row else None

    @writes
    def create_default(self, connection: Connection, at: float) -> None:
        """Create the experiment 0, unless it is there or its name is taken."""
        if self.find(DEFAULT_SEQ) is None and self.find_by_name(DEFAULT_NAME) is None:
            _insert(connection, at, name=DEFAULT_NAME, seq=DEFAULT_SEQ)

    @writes
    def create(
        self, connection: Connection, name: str, tags: Mapping[str, str], location: str, at: float
    ) -> MlflowExperiment | None:
        """Create an experiment; None if the name is taken."""
        name = clean(name)
        if self.find_by_name(name) is not None:
            return None
        _insert(connection, at, name=name, tags=_dump_tags(tags), artifact_location=clean(location))
        return self.find_by_name(name)

    @writes
    def rename(self, connection: Connection, seq: int, name: str, at: float) -> bool:
        """Give an experiment another name; false if that is taken."""
        name = clean(name)
        other = self.find_by_name(name)
        if other is not None and other.seq != seq:
            return False
        _change(connection, seq, name=name, modified_at=at)
        return True

    @writes
    def set_archived(self, connection: Connection, seq: int, archived_at: float | None, at: float) -> list[str]:
        """Delete an experiment with all its runs, or restore them (None). Returns the ids of runs that changed."""
        _change(connection, seq, archived_at=archived_at, modified_at=at)
        was_other = runs.c.archived_at.is_not(None) if archived_at is None else runs.c.archived_at.is_(None)
        mine = (runs.c.experiment_seq == seq) & was_other
        changed = list(connection.execute(select(runs.c.id).where(mine)).scalars())
        connection.execute(update(runs).where(mine).values(archived_at=archived_at))
        return changed

    @writes
    def set_tag(self, connection: Connection, seq: int, key: str, value: str) -> None:
        """Set a tag."""
        tags = {**self._read_tags(connection, seq), clean(key): clean(value)}
        _change(connection, seq, tags=dump_collection(tags))

    @writes
    def remove_tag(self, connection: Connection, seq: int, key: str) -> bool:
        """Remove a tag; false if there is none."""
        tags = self._read_tags(connection, seq)
        if key not in tags:
            return False
        del tags[key]
        _change(connection, seq, tags=dump_collection(tags))
        return True

    def _read_tags(self, connection: Connection, seq: int) -> dict[str, Any]:
        row = _BY_SEQ.row(connection, seq=seq)
        found: dict[str, Any] = json.loads(row[-1]) if row and row[-1] else {}
        return found


def _dump_tags(tags: Mapping[str, str]) -> str:
    return dump_collection({clean(key): clean(value) for key, value in tags.items()})


def _insert(connection: Connection, at: float, **values: Any) -> None:
    values = {"id": str(uuid.uuid4()), "created_at": at, "modified_at": at, "run_count": 0, "tags": "", **values}
    connection.execute(insert(experiments).values(**values))


def _change(connection: Connection, seq: int, **values: Any) -> None:
    connection.execute(update(experiments).where(experiments.c.seq == seq).values(**values))
