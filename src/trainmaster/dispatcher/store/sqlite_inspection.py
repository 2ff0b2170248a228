"""A look at a database file of SQLite before it is opened for writing. It changes nothing and leaves no file behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from trainmaster.dispatcher.store.schema import NEVER_MIGRATED, VERSION_TABLE
from trainmaster.job.errors import WorkspaceException

_MAGIC = b"SQLite format 3\0"


def read_revision(path: Path) -> str:
    """The revision of the database at `path`. Any other file gives one clear error.

    The cost does not grow with the database: the file's head and length, the schema and the first row of each
    table are read. Other damage is reported by the query that reads it.
    """
    _check_head(path)
    with closing(sqlite3.connect(_address(path), uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if VERSION_TABLE not in tables:
            raise WorkspaceException(
                f"{path} is not a Trainmaster database",
                cause=f"It is an SQLite database without the table {VERSION_TABLE}.",
                hint="Name the folder of a Trainmaster workspace, or put the right file back.",
            )
        for table in tables:
            connection.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchall()
        row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
    return str(row[0]) if row else NEVER_MIGRATED


def _address(path: Path) -> str:
    # With nothing in the write-ahead log the file alone is the database, and `immutable` keeps SQLite from
    # making a log and an index beside it. Otherwise the log must be read too; `ro` does not fold it in.
    mode = "mode=ro" if _has_log(path) else "mode=ro&immutable=1"
    return f"{path.absolute().as_uri()}?{mode}"


def _has_log(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _check_head(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(100)
        size = path.stat().st_size
    except FileNotFoundError:
        raise WorkspaceException(
            f"{path} does not exist", hint="Check the path of the workspace, or create a new workspace."
        ) from None
    except OSError as error:
        raise WorkspaceException(
            f"{path} cannot be read", cause=str(error), hint="Check the path and its permissions."
        ) from None
    cause = _what_is_wrong(head, size, _has_log(path))
    if cause:
        raise WorkspaceException(
            f"{path} is damaged or not a database",
            cause=cause,
            hint="Restore the file from a copy; nothing was changed.",
        )


def _what_is_wrong(head: bytes, size: int, has_log: bool) -> str:
    if size == 0:
        return "The file is empty."
    if len(head) < 100 or not head.startswith(_MAGIC):
        return "The file does not begin as an SQLite database does."
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    pages = int.from_bytes(head[28:32], "big")
    # While a log is being folded in, the head may already count pages that are still in the log.
    if not has_log and size < pages * page_size:
        return f"The file is cut off: {size} bytes, where {pages * page_size} should be."
    return ""
