"""Searching runs: their arguments as rows, and indexes. Quotas, and how much disk runs take.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import json
import math
import re
import shlex

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_EXACT_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_PAGE = 2000
_LONGEST, _MOST = 200, 500
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w./-]*=")


def upgrade() -> None:
    """Make the tables and indexes, and fill in the arguments of the runs that there are."""
    arguments = op.create_table(
        "arguments",
        sa.Column("run_seq", _KEY, nullable=False, autoincrement=False),
        sa.Column("name", _EXACT_TEXT, nullable=False),
        sa.Column("text", _EXACT_TEXT, nullable=False),
        sa.Column("number", sa.Float(53)),
        sa.PrimaryKeyConstraint("run_seq", "name", name="pk_arguments"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_arguments_run_seq"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "quotas",
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("runs", sa.Integer),
        sa.Column("nodes", sa.Integer),
        sa.Column("gpus", sa.Integer),
        sa.Column("disk_bytes", sa.BigInteger),
        sa.PrimaryKeyConstraint("owner", name="pk_quotas"),
    )
    op.create_table(
        "run_sizes",
        sa.Column("run_seq", _KEY, nullable=False, autoincrement=False),
        sa.Column("disk_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("run_seq", name="pk_run_sizes"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_run_sizes_run_seq"),
    )
    op.create_table(
        "disk_use",
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("disk_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_disk_use"),
    )
    _fill(arguments)
    op.create_index("ix_arguments_text", "arguments", ["name", "text", "run_seq"])
    _create_partial_index("ix_arguments_number", "arguments", ["name", "number", "run_seq"], "number IS NOT NULL")
    for name, column in (("last", "last_number"), ("minimum", "minimum"), ("maximum", "maximum")):
        _create_partial_index(f"ix_metrics_{name}", "metrics", ["name", column, "run_seq"], f"{column} IS NOT NULL")
    op.create_index("ix_runs_created", "runs", ["created_at", "seq"])
    op.create_index("ix_runs_user", "runs", ["submitted_by", "seq"])
    _create_partial_index("ix_runs_ended", "runs", ["status", "seq"], "ended_at IS NOT NULL")


def _create_partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _fill(arguments: sa.Table) -> None:
    connection = op.get_bind()
    page = sa.text("SELECT run_seq, spec FROM run_specs WHERE run_seq > :last ORDER BY run_seq LIMIT :most")
    last = -1
    while specs := connection.execute(page, {"last": last, "most": _PAGE}).all():
        rows = [
            {"run_seq": seq, "name": name, "text": _shorten(value), "number": _number_of(value)}
            for seq, spec in specs
            for name, value in _arguments_of(spec).items()
        ]
        if rows:
            connection.execute(sa.insert(arguments), rows)
        last = specs[-1][0]


def _arguments_of(spec: str) -> dict[str, str]:
    try:
        job = json.loads(spec)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(job, dict):
        return {}
    words = [word for text in _texts(job.get("command")) for word in _split(text)] + _texts(job.get("arguments"))
    found = {_shorten(name): value for name, value in _find_arguments(words).items()}
    return dict(list(found.items())[:_MOST])


def _find_arguments(words: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    values: list[str] | None = None
    for word in words:
        name, equals, value = word.partition("=")
        if _is_name(word):
            entry = found[_plain(name)] = [value] if equals else []
            values = None if equals else entry
        elif _ASSIGNMENT.match(word):
            found[_plain(name)] = [value]
            values = None
        elif values is not None:
            values.append(word)
    return {name: " ".join(values) if values else "true" for name, values in found.items()}


def _texts(words: object) -> list[str]:
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _is_name(word: str) -> bool:
    if not word.startswith("-") or not word.strip("-"):
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _plain(name: str) -> str:
    return (name.lstrip("-") or name).replace("-", "_")


def _shorten(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _number_of(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
