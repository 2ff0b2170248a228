"""Tags and properties of runs: stored as JSON in the run's row, and indexed in `run_labels`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from trainmaster.dispatcher.store.schema import run_labels, runs
from trainmaster.dispatcher.store.statements import PreparedInsert, PreparedSelect, chunks
from trainmaster.dispatcher.store.values import clean, dump, dump_collection, label_index, name_index

TAG, PROPERTY = 0, 1

_LABELS = PreparedSelect(select(runs.c.tags, runs.c.properties).where(runs.c.seq == bindparam("seq")))
_INSERT = PreparedInsert(run_labels.insert(), ("run_seq", "kind", "name", "value"))


def index(connection: Connection, seq: int, kind: int, labels: Mapping[str, Any]) -> None:
    """Index new labels of a run."""
    _INSERT.run(connection, [(seq, kind, name_index(name), label_index(value)) for name, value in labels.items()])


def set_tags(connection: Connection, seq: int, tags: Mapping[str, Any]) -> None:
    """Merge `tags` into those of the run."""
    tags = tags_of(tags)
    present, _ = _read(connection, seq)
    changed = {name: value for name, value in tags.items() if name not in present or present[name] != value}
    if changed:
        _unindex(connection, seq, changed)
        index(connection, seq, TAG, changed)
        _write(connection, seq, tags={**present, **changed})


def remove_tags(connection: Connection, seq: int, names: Collection[str]) -> list[str]:
    """Remove these tags, and return the names of those that there were."""
    present, _ = _read(connection, seq)
    gone = [name for name in names if name in present]
    if gone:
        _unindex(connection, seq, gone)
        _write(connection, seq, tags={name: value for name, value in present.items() if name not in gone})
    return gone


def add_properties(connection: Connection, seq: int, properties: Mapping[str, Any]) -> list[str]:
    """Add the properties that are new, and return the names of those that have another value already."""
    properties = properties_of(properties)
    _, present = _read(connection, seq)
    new = {name: value for name, value in properties.items() if name not in present}
    if new:
        index(connection, seq, PROPERTY, new)
        _write(connection, seq, properties={**present, **new})
    return [name for name, value in properties.items() if present.get(name, value) != value]


def tags_of(tags: Mapping[str, Any]) -> dict[str, Any]:
    """Tags as they are stored: names are text, values are any JSON."""
    return {clean(str(name)): json.loads(dump(value)) for name, value in tags.items()}


def properties_of(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as they are stored: names and values are text."""
    return {
        clean(str(name)): dump(value) if isinstance(value, (Mapping, list, tuple)) else clean(str(value))
        for name, value in properties.items()
    }


def _read(connection: Connection, seq: int) -> tuple[dict[str, Any], dict[str, str]]:
    row = _LABELS.row(connection, seq=seq)
    tags, properties = row if row else ("", "")
    return json.loads(tags) if tags else {}, json.loads(properties) if properties else {}


def _write(connection: Connection, seq: int, **labels: Mapping[str, Any]) -> None:
    columns = {name: dump_collection(value) for name, value in labels.items()}
    connection.execute(update(runs).where(runs.c.seq == seq).values(**columns))


def _unindex(connection: Connection, seq: int, names: Collection[str]) -> None:
    mine = (run_labels.c.run_seq == seq) & (run_labels.c.kind == TAG)
    for part in chunks(list(map(name_index, names))):
        connection.execute(delete(run_labels).where(mine & run_labels.c.name.in_(part)))
