"""The audit log and idempotency keys in the database."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from sqlalchemy import text
from tests.unit.server.identity.conftest import Clock

from trainmaster.server.identity import schema
from trainmaster.server.identity.audit import Change
from trainmaster.server.identity.counting import Counting
from trainmaster.server.identity.database import ServerDatabase, open_database
from trainmaster.server.identity.idempotency import (
    Answer,
    Claimed,
    IdempotencyKeys,
    InProgress,
    OtherRequest,
    Outcome,
)
from trainmaster.server.identity.service import IdentityService

REQUEST, OTHER = b"1" * 32, b"2" * 32


def claim(keys: IdempotencyKeys, database: ServerDatabase, key: str = "k", request: bytes = REQUEST) -> Outcome:
    with database.write_lazily() as connection:
        return keys.claim(connection, "ada", key, request)


def test_the_log_is_read_in_pages(identity: IdentityService, clock: Clock) -> None:
    for number in range(25):
        clock.now += 1
        workspace = "vision" if number % 2 else "nlp"
        identity.audit.record(Change("ada", "token t", "POST", "/runs", workspace=workspace, target=str(number)), 200)
    first = identity.audit.read(limit=10)
    second = identity.audit.read(limit=100, before=first[-1].seq)
    assert [int(entry.change.target) for entry in (*first, *second)] == list(range(24, -1, -1))
    assert {entry.change.workspace for entry in identity.audit.read(workspace="nlp")} == {"nlp"}
    assert identity.audit.remove_old(4) == 20
    assert len(identity.audit.read()) == 5


def test_a_change_that_was_begun_is_in_the_log(identity: IdentityService, database: ServerDatabase) -> None:
    with database.write_lazily() as connection:
        seq = identity.audit.begin(connection, Change("ada", "session", "POST", "/runs"))
    assert [entry.status for entry in identity.audit.read()] == [None]
    with database.write_lazily() as connection:
        identity.audit.finish(connection, seq, 201)
    # The outcome is written once.
    with database.write_lazily() as connection:
        identity.audit.finish(connection, seq, 500)
    assert [entry.status for entry in identity.audit.read()] == [201]


UPLOAD = Change("ada", "token t", "PUT", "/journals/{writer}", workspace="vision", target="/runs/1/journals/*")


async def upload(counting: Counting, status: int = 200) -> None:
    await counting.finish(await counting.begin(UPLOAD), UPLOAD, status)


def test_changes_of_an_hour_share_an_entry(identity: IdentityService, clock: Clock) -> None:
    counting = identity.counting

    async def log_for_two_hours() -> None:
        await asyncio.gather(*(upload(counting) for _ in range(20)))
        await upload(counting)
        # A failure is never hidden in an entry of successes.
        await upload(counting, 409)
        late = await counting.begin(UPLOAD)
        clock.now += 3600
        await upload(counting)
        await counting.flush()
        await counting.finish(late, UPLOAD, 200)
        await asyncio.gather(counting.flush(), counting.flush())

    asyncio.run(log_for_two_hours())
    assert [(entry.status, entry.count) for entry in identity.audit.read()] == [(200, 1), (409, 1), (200, 22)]


def test_a_failure_does_not_begin_an_entry_for_others(identity: IdentityService) -> None:
    async def fail_first() -> None:
        first, second = await identity.counting.begin(UPLOAD), await identity.counting.begin(UPLOAD)
        await identity.counting.finish(first, UPLOAD, 404)
        await identity.counting.finish(second, UPLOAD, 200)
        await upload(identity.counting)
        await upload(identity.counting)
        await identity.counting.flush()

    asyncio.run(fail_first())
    assert [(entry.status, entry.count) for entry in identity.audit.read()] == [(200, 2), (200, 1), (404, 1)]


def test_an_entry_is_written_before_the_first_change(identity: IdentityService) -> None:
    asyncio.run(identity.counting.begin(UPLOAD))
    assert [(entry.change, entry.status) for entry in identity.audit.read()] == [(UPLOAD, None)]


def test_the_tables_of_the_first_version_get_counts(place: tuple[Path, str]) -> None:
    database = open_database(*place)
    identity = IdentityService(database)
    identity.audit.record(UPLOAD, 200)
    with database.write() as connection:
        connection.execute(text("ALTER TABLE audit DROP COLUMN count"))
        connection.execute(schema.version.update().values(version=1))
    identity.close()
    again = IdentityService(open_database(*place))
    assert [entry.count for entry in again.audit.read()] == [1]
    again.close()


def test_a_key_is_answered_again(identity: IdentityService, database: ServerDatabase, clock: Clock) -> None:
    keys = identity.keys
    assert isinstance(claim(keys, database), Claimed)
    assert isinstance(claim(keys, database), InProgress)
    answer = Answer(201, b"{}", b'{"id": 1}')
    with database.write_lazily() as connection:
        keys.keep(connection, "ada", "k", answer)
    assert claim(keys, database) == answer
    assert isinstance(claim(keys, database, request=OTHER), OtherRequest)
    with database.write_lazily() as connection:
        assert isinstance(keys.claim(connection, "eve", "k", REQUEST), Claimed)
    clock.now += 24 * 3600 + 1
    assert isinstance(claim(keys, database), Claimed)


def test_a_claim_of_a_dead_server_ends(identity: IdentityService, database: ServerDatabase, clock: Clock) -> None:
    dead = IdempotencyKeys(database, "dead", clock)
    assert isinstance(claim(dead, database), Claimed)
    clock.now += 20
    dead.renew()
    clock.now += 20
    assert isinstance(claim(identity.keys, database), InProgress)
    clock.now += 11
    assert isinstance(claim(identity.keys, database), Claimed)
    identity.keys.renew()
    assert isinstance(claim(dead, database), InProgress)


def test_a_released_key_is_free(identity: IdentityService, database: ServerDatabase) -> None:
    claim(identity.keys, database)
    with database.write_lazily() as connection:
        identity.keys.release(connection, "ada", "k")
    assert isinstance(claim(identity.keys, database), Claimed)
    identity.keys.release_all()
    assert isinstance(claim(identity.keys, database), Claimed)


def test_old_keys_are_removed(identity: IdentityService, database: ServerDatabase, clock: Clock) -> None:
    claim(identity.keys, database)
    clock.now += 24 * 3600 + 1
    identity.keys.remove_old()
    assert isinstance(claim(identity.keys, database, request=b"x" * 32), Claimed)


def test_only_one_of_many_gets_a_key(identity: IdentityService, database: ServerDatabase) -> None:
    outcomes: list[Outcome] = []
    begin = threading.Barrier(8)

    def race() -> None:
        begin.wait()
        outcomes.append(claim(identity.keys, database))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Claimed", *["InProgress"] * 7]
