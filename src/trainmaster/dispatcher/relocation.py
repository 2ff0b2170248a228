"""Moving the database of a workspace between the file in its folder and a PostgreSQL server.

Until the last step the workspace uses the old database, and that step is one change of a file: `database.json` appears,
or disappears. What a killed move left behind is removed by the next one. The old database is renamed, not deleted.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import text

from trainmaster.dispatcher.ownership import hold_lock
from trainmaster.dispatcher.store import Store, copying, opening
from trainmaster.dispatcher.store.connection import Database
from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.shared.database_address import (
    POSTGRESQL,
    DatabaseAddress,
    read_address,
    remove_address,
    schema_of,
    write_address,
)
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import MLFLOW_RUN

Tell = copying.Tell


def move_to_server(folder: WorkspaceFolder, url: str, tell: Tell) -> str:
    """Move the database to a server, and return where the old one is."""
    from trainmaster.dispatcher.store import postgresql

    if read_address(folder) is not None:
        raise UserErrorException(
            "the database of the workspace is on a PostgreSQL server already",
            hint="Move it to a file first: 'trainmaster workspace move --to sqlite'.",
        )
    if not folder.database.exists():
        raise WorkspaceException(f"the database of the workspace is missing: {folder.database}")
    address = DatabaseAddress(url, schema_of(folder.read_identity()["id"]))
    with _locks(folder):
        with _open(folder.database) as source:
            _refuse_active(source)
            with _prepare_schema(address) as target:
                _copy(source, target, tell)
                postgresql.tidy_tables(address)
                write_address(folder, url)
        _note_kind(folder, POSTGRESQL)
        kept = folder.path / f"{folder.database.name}.moved-{_now()}"
        folder.database.rename(kept)
        durable.flush_one(folder.path)
    return str(kept)


def move_to_file(folder: WorkspaceFolder, tell: Tell) -> str:
    """Move the database to a file, and return where the old one is."""
    from trainmaster.dispatcher.store.postgresql import rename_schema

    address = read_address(folder)
    if address is None:
        raise UserErrorException("the database of the workspace is a file already")
    with _locks(folder):
        with _open(address) as source:
            _refuse_active(source)
            draft = folder.path / f"{folder.database.name}.moving"
            for path in folder.path.glob(f"{draft.name}*"):
                path.unlink()
            with contextlib.closing(opening.create_database(draft)) as target:
                _copy(source, target, tell)
            durable.flush_one(draft)
            draft.rename(folder.database)
            durable.flush_one(folder.path)
            _mark_as_left(source, address)
            _note_kind(folder, None)
            remove_address(folder)
        kept = f"{address.schema}_moved_{_now()}"
        rename_schema(address, kept)
    return f"the schema {kept}"


def drop_schema(folder: WorkspaceFolder) -> None:
    """Delete the workspace's schema with everything in it, if its database is on a server."""
    from trainmaster.dispatcher.store import postgresql

    address = read_address(folder)
    if address is not None and postgresql.has_store(address):
        with _locks(folder), _open(address) as database:
            _refuse_active(database)
            postgresql.drop_schema(address)


@contextlib.contextmanager
def _locks(folder: WorkspaceFolder) -> Iterator[None]:
    """Keep dispatchers of this machine from starting, those of the old database and those of the new one."""
    with contextlib.ExitStack() as held:
        for path in folder.list_locks():
            if not held.enter_context(hold_lock(path)):
                raise WorkspaceException(
                    "the dispatcher of the workspace is running",
                    hint="Stop it with 'trainmaster down', then try again.",
                )
        yield


@contextlib.contextmanager
def _open(place: opening.Place) -> Iterator[Database]:
    with contextlib.closing(opening.open_database(place)) as database:
        yield database


@contextlib.contextmanager
def _prepare_schema(address: DatabaseAddress) -> Iterator[Database]:
    """An empty schema, in place of what a killed move left."""
    from trainmaster.dispatcher.store import postgresql

    if postgresql.has_store(address):
        with _open(address) as left:
            if not copying.is_empty(left) and not _is_left(left, address):
                raise WorkspaceException(
                    f"the database {address} has a workspace with the same id already",
                    hint="Another copy of this folder may use it. If not, rename or drop the schema, then try again.",
                )
            is_empty = copying.is_empty(left)
        if is_empty:
            postgresql.drop_schema(address)
        else:
            postgresql.rename_schema(address, f"{address.schema}_moved_{_now()}")
    with contextlib.closing(opening.create_database(address)) as target:
        yield target


def _copy(source: Database, target: Database, tell: Tell) -> None:
    expected = copying.copy(source, target, tell)
    copying.verify(target, expected, tell)


def _refuse_active(database: Database) -> None:
    active = [run for run in Store(database).runs.list_active() if run.type != MLFLOW_RUN]
    if active:
        raise WorkspaceException(
            f"the workspace has {len(active)} runs that have not ended, such as {active[0].id}",
            hint="Cancel them, or wait for them.",
        )


_LEFT = "trainmaster: the workspace was moved to a file"


def _mark_as_left(database: Database, address: DatabaseAddress) -> None:
    """Note in the schema that it is a copy, in case this process is killed before it is renamed."""
    with database.write() as connection:
        connection.execute(text(f"COMMENT ON SCHEMA {address.schema} IS '{_LEFT}'"))


def _is_left(database: Database, address: DatabaseAddress) -> bool:
    question = text("SELECT obj_description(:name ::regnamespace)")
    with database.read() as connection:
        return bool(connection.execute(question, {"name": address.schema}).scalar() == _LEFT)


def _note_kind(folder: WorkspaceFolder, kind: str | None) -> None:
    identity = {key: value for key, value in folder.read_identity().items() if key != "database"}
    more = {"database": kind} if kind else {}
    durable.write(folder.identity, (json.dumps({**identity, **more}, indent=1) + "\n").encode())


def _now() -> str:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime())


def move(folder: WorkspaceFolder, to: str, tell: Tell) -> str:
    """Move to `sqlite` or to the URL of a PostgreSQL database, and return where the old database is."""
    return move_to_file(folder, tell) if to == "sqlite" else move_to_server(folder, to, tell)


def check_folder(path: Path) -> WorkspaceFolder:
    """The folder of a workspace."""
    folder = WorkspaceFolder(path)
    if not folder.identity.is_file():
        raise WorkspaceException(f"there is no workspace in {path}")
    return folder
