"""A PostgreSQL server of our own for tests: installed if it is missing, started in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
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
    """A running server that listens on a unix socket, and on an address if it has one."""

    folder: Path
    durable: bool = False
    address: str = ""

    def create_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"store_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql://{_USER}@{self.address}/{name}" + ("" if self.address else f"?host={self.folder}")

    def drop_database(self, url: str) -> None:
        """Delete a database, even if it is in use."""
        self.execute(f"DROP DATABASE {make_url(url).database} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        """Execute a statement as the administrator."""
        with psycopg.connect(host=str(self.folder), user=_USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def start(self) -> None:
        """Start the server; after a kill, this waits until the last processes of the killed server have ended."""
        deadline = time.monotonic() + 60
        while True:
            try:
                _run([*self._control, "-l", str(self.folder / "log"), "-o", self._options, "start"], _identity())
                return
            except AssertionError:
                if time.monotonic() > deadline:
                    raise

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: `fast` disconnects clients politely, `immediate` does not."""
        _run([*self._control, "-m", mode, "stop"], _identity())

    def kill(self) -> None:
        """Kill the postmaster and all its processes, as a crash of the machine would."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def _control(self) -> list[str]:
        programs = find_programs()
        assert programs is not None
        return [str(programs / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-t", "120"]

    @property
    def _options(self) -> str:
        settings = [f"listen_addresses='{self.address}'", "max_connections=50"]
        if self.durable:
            settings += ["shared_buffers=256MB", "max_wal_size=4GB"]
        else:
            settings += ["shared_buffers=16MB", "fsync=off"]
        return f"-k {self.folder} " + " ".join(f"-c {setting}" for setting in settings)


def empty_tables(url: str) -> None:
    """Delete all rows of a store. For few rows this is many times faster than TRUNCATE or a new database."""
    statements = [f"DELETE FROM {table.name}" for table in reversed(schema.metadata.sorted_tables)]
    statements += [
        f"ALTER SEQUENCE {name} RESTART" for name in ("experiments_seq_seq", "runs_seq_seq", "models_seq_seq")
    ]
    with psycopg.connect(url) as connection:
        connection.execute("; ".join(statements).encode())


@contextmanager
def run_server(durable: bool = False, address: str = "") -> Iterator[Server]:
    """A server for as long as the context lasts. Only a `durable` one flushes its files, which takes long.

    With an address of a network for tests, everybody on that network may use it.
    """
    fault = ensure(lambda: ["postgresql"] if find_programs() is None else [])
    assert not fault, fault
    programs = find_programs()
    assert programs is not None
    # The path of a socket is limited to about 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="tm-pg-", dir="/tmp"))
    shutil.chown(folder, _account().pw_uid)
    data = folder / "data"
    server = Server(folder, durable, address)
    try:
        _run(
            [programs / "initdb", "-D", data, "-U", _USER, "--auth=trust", "--encoding=UTF8", "--no-locale"],
            _identity(),
        )
        if address:
            with open(data / "pg_hba.conf", "a") as file:
                file.write(f"host all all {address}/24 trust\n")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _account() -> pwd.struct_passwd:
    # The server refuses to run as root.
    return pwd.getpwnam(_USER) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def _identity() -> dict[str, object]:
    user = _account()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs on this machine."""
    found = sorted(_VERSIONS.glob("*/bin/initdb"))
    return found[-1].parent if found else None


def _run(words: list[object], identity: dict[str, object] | None = None) -> None:
    # To a file, not a pipe: the server inherits it and outlives the program that starts it.
    with tempfile.TemporaryFile("w+") as output:
        command = [str(word) for word in words]
        done = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False, **(identity or {}))
        output.seek(0)
        assert done.returncode == 0, f"{command} failed:\n{output.read()}"
