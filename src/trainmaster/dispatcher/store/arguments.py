"""The arguments of runs, by which they are searched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select

from trainmaster.dispatcher.store.schema import arguments
from trainmaster.dispatcher.store.statements import PreparedInsert, PreparedSelect
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.arguments import arguments_of, number_of, words_of_command

_LONGEST = 200
_MOST = 500
"""Arguments of one run; a script with more is not searched by the rest."""

_NAMES = PreparedSelect(select(arguments.c.name).where(arguments.c.run_seq == bindparam("run_seq")))
_INSERT = PreparedInsert(arguments.insert(), ("run_seq", "name", "text", "number"))


def index(connection: Connection, seq: int, spec: str) -> None:
    """Index the arguments in the specification of a new run."""
    _INSERT.run(connection, [(seq, *row) for row in _rows_of(spec)])


def add(connection: Connection, seq: int, params: Mapping[str, str]) -> None:
    """Index parameters that were logged. Of two names that are the same when shortened, the first counts."""
    present = {name for (name,) in _NAMES.rows(connection, run_seq=seq)}
    new: dict[str, str] = {}
    for name, value in params.items():
        new.setdefault(shorten(name), value)
    rows = [(seq, name, shorten(value), number_of(value)) for name, value in new.items() if name not in present]
    _INSERT.run(connection, rows[: max(0, _MOST - len(present))])


def shorten(text: str) -> str:
    """A name or value as it is indexed."""
    text = clean(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _rows_of(spec: str) -> list[tuple[str, str, float | None]]:
    try:
        job: Any = json.loads(spec)
    except (ValueError, RecursionError):
        return []
    if not isinstance(job, dict):
        return []
    words = [*words_of_command(_texts(job.get("command"))), *_texts(job.get("arguments"))]
    found = {shorten(name): value for name, value in arguments_of(words).items()}
    return [(name, shorten(value), number_of(value)) for name, value in list(found.items())[:_MOST]]


def _texts(words: Any) -> list[str]:
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
