"""Which names and values there are, for choosing columns and completing filters.

An index is read from one name to the next: as many steps as there are names, however many runs have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, select, true

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.labels import PROPERTY, TAG
from trainmaster.dispatcher.store.points import SYSTEM
from trainmaster.dispatcher.store.schema import arguments, experiments, metrics, run_labels, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, chunks
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import clean, name_index
from trainmaster.shared.filters import Field
from trainmaster.shared.records import RunFields, Status

_MOST_STEPS = 20_000
_MOST_SYSTEM = 200


def _steps(column: ColumnElement[Any], *conditions: ColumnElement[bool]) -> tuple[PreparedSelect, PreparedSelect]:
    """The first value from a text on, and the first one after a text."""
    first = select(func.min(column)).where(*conditions)
    return (
        PreparedSelect(first.where(column >= bindparam("text"))),
        PreparedSelect(first.where(column > bindparam("text"))),
    )


_ARGUMENT_NAMES = _steps(arguments.c.name)
# A metric that has any number has a smallest one.
_METRIC_NAMES = _steps(metrics.c.name, metrics.c.minimum.is_not(None))
_LABEL_NAMES = _steps(run_labels.c.name, run_labels.c.kind == bindparam("kind"))
_ARGUMENT_VALUES = _steps(arguments.c.text, arguments.c.name == bindparam("name"))
_LABEL_VALUES = _steps(
    run_labels.c.value, run_labels.c.kind == bindparam("kind"), run_labels.c.name == bindparam("name")
)
_COLUMN_VALUES = {
    "experiment": _steps(experiments.c.name, true()),
    "user": _steps(runs.c.submitted_by),
    "target": _steps(runs.c.target),
}


class FieldNames(Repository):
    """Names of arguments, metrics, tags and properties, and their values."""

    @reads
    def list_names(self, connection: Connection, prefix: str, most: int) -> RunFields:
        """The names that begin with `prefix`, `most` of each kind."""
        kinds: list[tuple[tuple[PreparedSelect, PreparedSelect], dict[str, Any]]] = [
            (_ARGUMENT_NAMES, {}),
            (_METRIC_NAMES, {}),
            (_LABEL_NAMES, {"kind": TAG}),
            (_LABEL_NAMES, {"kind": PROPERTY}),
        ]
        found = [_walk(connection, steps, prefix, most + 1, **values) for steps, values in kinds]
        if not prefix.startswith(SYSTEM):
            # What Trainmaster measured has the same names in all runs, and is offered to those who ask for it.
            names = _walk(connection, _METRIC_NAMES, prefix, most + 1 + _MOST_SYSTEM)
            found[1] = [name for name in names if not name.startswith(f"{SYSTEM}/")]
        shown = [tuple(names[:most]) for names in found]
        return RunFields(shown[0], shown[1], shown[2], shown[3], all(len(names) <= most for names in found))

    @reads
    def list_values(self, connection: Connection, field: Field, prefix: str, most: int) -> list[str]:
        """The values of a field that begin with `prefix`; none for a field whose values cannot be listed quickly."""
        if field.kind == "argument":
            return _walk(connection, _ARGUMENT_VALUES, prefix, most, name=shorten(field.name))
        if field.kind in ("tag", "property"):
            kind = TAG if field.kind == "tag" else PROPERTY
            return _walk(connection, _LABEL_VALUES, prefix, most, kind=kind, name=name_index(clean(field.name)))
        if field.kind == "column" and field.name == "status":
            return [status for status in map(str, Status) if status.lower().startswith(prefix.lower())]
        steps = _COLUMN_VALUES.get(field.name) if field.kind == "column" else None
        return _walk(connection, steps, prefix, most) if steps else []

    @reads
    def find_differing(self, connection: Connection, run_ids: Sequence[str]) -> RunFields:
        """The names whose values are not the same in all of these runs; a run without a value differs too."""
        seqs: list[int] = []
        for part in chunks(list(dict.fromkeys(run_ids))):
            seqs += connection.execute(select(runs.c.seq).where(runs.c.id.in_(part))).scalars().all()
        return RunFields(
            _differing(connection, seqs, arguments.c.run_seq, arguments.c.name, arguments.c.text),
            _differing(
                connection, seqs, metrics.c.run_seq, metrics.c.name, metrics.c.last_number, metrics.c.kind != SYSTEM
            ),
            _differing(connection, seqs, run_labels.c.run_seq, run_labels.c.name, run_labels.c.value, _is_of(TAG)),
            _differing(connection, seqs, run_labels.c.run_seq, run_labels.c.name, run_labels.c.value, _is_of(PROPERTY)),
            is_all=True,
        )


def _is_of(kind: int) -> ColumnElement[bool]:
    return run_labels.c.kind == kind


def _walk(
    connection: Connection, steps: tuple[PreparedSelect, PreparedSelect], prefix: str, most: int, **values: Any
) -> list[str]:
    """The values that begin with `prefix`, one step after the other."""
    found: list[str] = []
    prefix = clean(prefix)
    # PostgreSQL may sort texts by the rules of a language, where those that begin alike are not together.
    is_together = connection.dialect.name == "sqlite"
    step, text = steps[0], prefix if is_together else ""
    for _ in range(_MOST_STEPS):
        row = step.row(connection, text=text, **values)
        if len(found) == most or row is None or row[0] is None:
            break
        text, step = row[0], steps[1]
        if text and text.startswith(prefix):
            found.append(text)
        elif is_together and text:
            break
    return found


def _differing(
    connection: Connection,
    seqs: Sequence[int],
    seq: ColumnElement[Any],
    name: ColumnElement[Any],
    value: ColumnElement[Any],
    condition: ColumnElement[bool] | None = None,
) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    values: dict[str, set[Any]] = {}
    for part in chunks(seqs):
        rows = select(name, func.count(), func.min(value), func.max(value), func.count(value)).where(seq.in_(part))
        if condition is not None:
            rows = rows.where(condition)
        for text, count, low, high, with_value in connection.execute(rows.group_by(name)):
            counts[text] = counts.get(text, 0) + count
            values.setdefault(text, set()).update({low, high} if with_value == count else {low, high, None})
    return tuple(sorted(each for each in counts if counts[each] < len(seqs) or len(values[each]) > 1))
