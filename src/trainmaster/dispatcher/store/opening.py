"""Making, opening and migrating a database file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.connection import Database, translated
from trainmaster.dispatcher.store.inspection import read_revision
from trainmaster.job.agent import durable
from trainmaster.job.errors import WorkspaceException


def create_database(path: Path) -> Database:
    """A new database at `path`: complete, or not there at all."""
    if path.exists():
        raise WorkspaceException(f"{path} is already there", hint="Open it, or choose another folder.")
    unfinished = path.with_name(path.name + ".new")
    try:
        _discard(unfinished)
        # Readable by its owner alone: a workspace's metrics and options are nobody else's.
        unfinished.touch(mode=0o600)
        _migrate(unfinished)
        unfinished.rename(path)
        durable.flush_one(path.parent)
    except OSError as error:
        raise WorkspaceException(
            f"{path} cannot be made",
            cause=str(error),
            hint="Check the folder, its permissions and the free space.",
        ) from None
    finally:
        _discard(unfinished)
    return Database(path)


def open_database(path: Path) -> Database:
    """The database at `path`, migrated when an older Trainmaster made it."""
    revision = read_revision(path)
    if revision != schema.REVISION:
        _refuse_unknown(path, revision)
        copy = path.with_name(f"{path.name}.before-{schema.REVISION}")
        _copy(path, copy)
        _migrate(path, f"The database as it was is in {copy.name}.")
    return Database(path)


def _refuse_unknown(path: Path, revision: str) -> None:
    if not (revision.isdecimal() and int(revision) < int(schema.REVISION)):
        raise WorkspaceException(
            f"{path} was made by a newer Trainmaster",
            cause=f"Its revision is {revision}; this Trainmaster knows up to {schema.REVISION}.",
            hint="Upgrade with `pip install --upgrade trainmaster`.",
        )


def _copy(path: Path, copy: Path) -> None:
    unfinished = copy.with_name(copy.name + ".new")
    try:
        with (
            translated(path),
            closing(sqlite3.connect(path)) as source,
            closing(sqlite3.connect(unfinished)) as destination,
        ):
            source.backup(destination)
            # One file, not three: the copy is for a person to move back.
            destination.execute("PRAGMA journal_mode = DELETE")
        unfinished.replace(copy)
        durable.flush_one(copy.parent)
    finally:
        _discard(unfinished)


def _migrate(path: Path, hint: str = "") -> None:
    # Costly to import, and hardly ever needed.
    from trainmaster.dispatcher.store.migrate import upgrade

    with translated(path):
        upgrade(path, hint)


def _discard(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
