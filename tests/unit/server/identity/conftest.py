"""The tables of a server: in a SQLite file, or in the PostgreSQL server of `test_server_identity.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgresql import Server

from trainmaster.server.identity.database import ServerDatabase, open_database
from trainmaster.server.identity.service import IdentityService


class Clock:
    """A clock that stands still until the test sets it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The root folder and the address of the database."""
    running = os.environ.get("TRAINMASTER_TESTS_POSTGRESQL")
    if not running:
        yield tmp_path, ""
        return
    server = Server(Path(running))
    url = server.create_database()
    yield tmp_path, url
    server.drop_database(url)


@pytest.fixture
def database(place: tuple[Path, str]) -> Iterator[ServerDatabase]:
    found = open_database(*place)
    yield found
    found.close()


@pytest.fixture
def identity(database: ServerDatabase, clock: Clock) -> Iterator[IdentityService]:
    service = IdentityService(database, clock=clock)
    yield service
    service.close()
