"""Parameters of runs: texts that are written once, whole in the run's row, and shortened among its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, select, update

from trainmaster.dispatcher.store import arguments
from trainmaster.dispatcher.store.schema import runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.values import clean, dump_collection

_PARAMS = PreparedSelect(select(runs.c.params).where(runs.c.seq == bindparam("seq")))


def read_params(connection: Connection, seq: int) -> dict[str, str]:
    """The parameters of a run."""
    row = _PARAMS.row(connection, seq=seq)
    return json.loads(row[0]) if row and row[0] else {}


def add_params(connection: Connection, seq: int, params: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Add parameters. If one has another value already, nothing is added.

    Returns the name, the present value and the new value of such parameters.
    """
    present = read_params(connection, seq)
    wanted = {clean(key): clean(value) for key, value in params.items()}
    conflicts = [(key, present[key], value) for key, value in wanted.items() if present.get(key, value) != value]
    new = {key: value for key, value in wanted.items() if key not in present}
    if conflicts or not new:
        return conflicts
    text = dump_collection({**present, **new})
    connection.execute(update(runs).where(runs.c.seq == seq).values(params=text))
    arguments.add(connection, seq, new)
    return []
