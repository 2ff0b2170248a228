"""A PostgreSQL server of our own for tests: installed if it is missing, started in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from tests.cluster.packages import ensure
from trainmaster.dispatcher.store import schema

_VERSIONS = Path("/usr/lib/postgresql")
_USER = "postgres"


@dataclass(frozen=True)
class Server:
    """A running server that listens on a unix socket only."""

    folder: Path

    def create_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"store_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name}")
        return f"postgresql://{_USER}@/{name}?host={self.folder}"

    def drop_database(self, url: str) -> None:
        """Delete a database."""
        self._execute(f"DROP DATABASE {make_url(url).database}")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(host=str(self.folder), user=_USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(statement.encode())


def empty_tables(url: str) -> None:
    """Delete all rows of a store. For few rows this is many times faster than TRUNCATE or a new database."""
    statements = [f"DELETE FROM {table.name}" for table in reversed(schema.metadata.sorted_tables)]
    statements += [
        f"ALTER SEQUENCE {name} RESTART" for name in ("experiments_seq_seq", "runs_seq_seq", "models_seq_seq")
    ]
    with psycopg.connect(url) as connection:
        connection.execute("; ".join(statements).encode())


@contextmanager
def run_server() -> Iterator[Server]:
    """A server for as long as the context lasts."""
    fault = ensure(lambda: ["postgresql"] if _find_programs() is None else [])
    assert not fault, fault
    programs = _find_programs()
    assert programs is not None
    # The path of a socket is limited to about 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="tm-pg-", dir="/tmp"))
    # The server refuses to run as root.
    user = pwd.getpwnam(_USER) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    shutil.chown(folder, user.pw_uid)
    data = folder / "data"
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-t", "120"]
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=50 -c shared_buffers=16MB"
    try:
        _run([programs / "initdb", "-D", data, "-U", _USER, "--auth=trust", "--encoding=UTF8", "--no-locale"], identity)
        _run([*control, "-l", str(folder / "log"), "-o", options, "start"], identity)
        try:
            yield Server(folder)
        finally:
            _run([*control, "-m", "immediate", "stop"], identity)
    finally:
        shutil.rmtree(folder)


def _find_programs() -> Path | None:
    found = sorted(_VERSIONS.glob("*/bin/initdb"))
    return found[-1].parent if found else None


def _run(words: list[object], identity: dict[str, object] | None = None) -> None:
    # To a file, not a pipe: the server inherits it and outlives the program that starts it.
    with tempfile.TemporaryFile("w+") as output:
        command = [str(word) for word in words]
        done = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False, **(identity or {}))
        output.seek(0)
        assert done.returncode == 0, f"{command} failed:\n{output.read()}"
