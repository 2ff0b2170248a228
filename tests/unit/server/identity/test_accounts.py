"""Users, tokens, roles, sessions and links in the database."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from sqlalchemy import select, text, update
from tests.unit.server.identity.conftest import Clock

from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import Scope
from trainmaster.server.identity.database import ServerDatabase, open_database
from trainmaster.server.identity.service import IdentityService
from trainmaster.server.identity.sessions import derive_csrf_token, is_csrf_token

DAY = 86400.0


def test_a_token_is_shown_once_and_kept_as_a_digest(identity: IdentityService, database: ServerDatabase) -> None:
    identity.users.add("ada")
    token, secret = identity.tokens.create("ada", label="laptop")
    assert secret.startswith("tm_") and len(secret) == 46
    with database.read() as connection:
        dumped = repr([connection.execute(select(table)).all() for table in schema.metadata.sorted_tables])
    assert secret not in dumped and secret[3:] not in dumped
    found = identity.accounts.find_by_token(secret)
    assert found is not None and (found.user, found.token_id, found.is_admin) == ("ada", token.id, False)


def test_two_tokens_differ(identity: IdentityService) -> None:
    identity.users.add("ada")
    assert len({identity.tokens.create("ada")[1] for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: text + "a", lambda text: text.upper(), str.lower]
)
def test_what_resembles_a_token_is_none(identity: IdentityService, change) -> None:
    identity.users.add("ada")
    assert identity.accounts.find_by_token(change(identity.tokens.create("ada")[1])) is None


def test_a_token_expires(identity: IdentityService, clock: Clock) -> None:
    identity.users.add("ada")
    _, secret = identity.tokens.create("ada", days=2)
    clock.now += 2 * DAY - 1
    assert identity.accounts.find_by_token(secret)
    clock.now += 1
    # Neither by a look-up nor by the cache.
    assert identity.accounts.find_cached_token(secret) is None
    assert identity.accounts.find_by_token(secret) is None


def test_a_revoked_token_ends_at_once_and_stays_so(identity: IdentityService, clock: Clock) -> None:
    identity.users.add("ada")
    token, secret = identity.tokens.create("ada")
    assert identity.accounts.find_by_token(secret) and identity.accounts.find_cached_token(secret)
    revoked = identity.tokens.revoke(token.id)
    assert identity.accounts.find_cached_token(secret) is None and identity.accounts.find_by_token(secret) is None
    clock.now += 100
    assert identity.tokens.revoke(token.id) == revoked


def test_a_lookup_that_overlaps_a_revocation_is_not_kept(identity: IdentityService) -> None:
    identity.users.add("ada")
    token, secret = identity.tokens.create("ada")
    put = identity.accounts._cache.put
    # The token was read as valid, then it is revoked, then what was read is put into the cache.
    identity.accounts._cache.put = lambda *facts: (identity.tokens.revoke(token.id), put(*facts))  # type: ignore[method-assign]
    identity.accounts.find_by_token(secret)
    assert identity.accounts.find_cached_token(secret) is None


def test_removing_a_user_ends_everything(identity: IdentityService) -> None:
    identity.users.add("root", is_admin=True)
    identity.users.add("ada")
    identity.members.grant("vision", "ada", "owner")
    _, secret = identity.tokens.create("ada")
    session = identity.sessions.start("ada")
    code = identity.sessions.create_link("ada")
    identity.users.remove("ada")
    assert identity.accounts.find_by_token(secret) is None
    assert identity.accounts.find_by_session(session) is None
    assert identity.sessions.redeem_link(code) is None
    # The next user of this name begins with nothing.
    identity.users.add("ada")
    assert identity.members.list("vision") == []


def test_the_last_administrator_stays(identity: IdentityService) -> None:
    identity.users.add("root", is_admin=True)
    for attempt in (lambda: identity.users.remove("root"), lambda: identity.users.change("root", is_admin=False)):
        with pytest.raises(UserErrorException, match="only administrator"):
            attempt()
    identity.users.add("ada", is_admin=True)
    identity.users.remove("root")


def test_adding_a_user_may_be_repeated(identity: IdentityService) -> None:
    assert identity.users.add("Ada") == identity.users.add("ada")
    with pytest.raises(UserErrorException, match="already"):
        identity.users.add("ada", is_admin=True)


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "../x", "-x", "ä", "a\n", "a" * 129, "*"])
def test_names_that_cannot_be(identity: IdentityService, name: str) -> None:
    with pytest.raises(UserErrorException, match="cannot be the name of a user"):
        identity.users.add(name)


def test_roles(identity: IdentityService) -> None:
    identity.users.add("ada")
    identity.members.grant("vision", "ada", "reader")
    identity.members.grant("vision", "ada", "contributor")
    identity.members.grant("nlp", "ada", "reader")
    _, secret = identity.tokens.create("ada")
    found = identity.accounts.find_by_token(secret)
    assert found is not None and found.roles == {"vision": ("contributor",), "nlp": ("reader",)}
    identity.members.revoke("vision", "ada")
    found = identity.accounts.find_by_token(secret)
    assert found is not None and found.roles == {"nlp": ("reader",)}
    with pytest.raises(UserErrorException, match="no role"):
        identity.members.grant("vision", "ada", "god")
    with pytest.raises(UserErrorException, match="no user"):
        identity.members.grant("vision", "eve", "reader")


def test_a_workspace_that_is_removed_takes_its_roles_and_tokens_along(identity: IdentityService) -> None:
    identity.users.add("ada")
    identity.members.grant("vision", "ada", "owner")
    _, secret = identity.tokens.create("ada", scope=Scope("vision"))
    identity.members.remove_workspace("vision")
    assert identity.members.list("vision") == [] and identity.accounts.find_by_token(secret) is None


@pytest.mark.parametrize(
    "scope", [Scope(role="god"), Scope(run_id="run_1"), Scope(workspace="vision", role="reader", run_id="run_1")]
)
def test_scopes_that_cannot_be(identity: IdentityService, scope: Scope) -> None:
    identity.users.add("ada")
    with pytest.raises(UserErrorException):
        identity.tokens.create("ada", scope=scope)


def test_the_last_use_is_written_once_a_minute(identity: IdentityService, clock: Clock) -> None:
    identity.users.add("ada")
    token, _ = identity.tokens.create("ada")
    assert identity.tokens.get(token.id).last_used_at is None
    uses = []
    for _ in range(130):
        clock.now += 1
        if identity.tokens.needs_touch(token.id):
            identity.tokens.touch(token.id)
            uses.append(clock.now)
    assert len(uses) == 3 and identity.tokens.get(token.id).last_used_at == uses[-1]


def test_a_link_works_once_and_for_minutes(identity: IdentityService, clock: Clock) -> None:
    identity.users.add("ada")
    code = identity.sessions.create_link("ada")
    assert identity.sessions.redeem_link(code) == "ada"
    assert identity.sessions.redeem_link(code) is None
    late = identity.sessions.create_link("ada", minutes=5)
    clock.now += 301
    assert identity.sessions.redeem_link(late) is None
    # Not even if the clock is set back.
    clock.now -= 301
    assert identity.sessions.redeem_link(late) is None


def test_sessions_end(identity: IdentityService, clock: Clock) -> None:
    identity.users.add("ada")
    first, second = identity.sessions.start("ada"), identity.sessions.start("ada")
    found = identity.accounts.find_by_session(first)
    assert found is not None and found.user == "ada" and found.credential == "session"
    # A session is not a token, and a token is not a session, neither in the table nor in the cache.
    assert identity.accounts.find_by_token(first) is None
    assert identity.accounts.find_cached_token(first) is None and identity.accounts.find_cached_session(first)
    assert identity.accounts.find_by_session(identity.tokens.create("ada")[1]) is None
    identity.sessions.end(first)
    assert identity.accounts.find_by_session(first) is None and identity.accounts.find_by_session(second)
    clock.now += 12 * 3600
    assert identity.accounts.find_by_session(second) is None


def test_a_csrf_token_belongs_to_one_session() -> None:
    assert is_csrf_token("a", derive_csrf_token("a"))
    assert (
        not is_csrf_token("a", derive_csrf_token("b"))
        and not is_csrf_token("a", "")
        and not is_csrf_token("a", "\udcff")
    )


def test_only_issuer_and_subject_identify_a_user_of_a_provider(identity: IdentityService) -> None:
    identity.users.add("root", is_admin=True)
    first = identity.users.sign_in("ada", "https://id", "1", is_admin=False, roles={"vision": "reader"})
    # A new name at the provider is still the same person.
    assert identity.users.sign_in("countess", "https://id", "1", is_admin=False, roles={}) == first
    for name, subject in (("root", "2"), ("ada", "2")):
        with pytest.raises(UserErrorException, match="belongs to another user"):
            identity.users.sign_in(name, "https://id", subject, is_admin=True, roles={})
    with pytest.raises(UserErrorException, match="belongs to another user"):
        identity.users.sign_in("ada", "https://other", "1", is_admin=True, roles={})


def test_an_administrator_links_a_user_to_the_provider(identity: IdentityService) -> None:
    identity.users.add("root", is_admin=True, subject="7")
    assert identity.users.sign_in("root", "https://id", "7", is_admin=False, roles={}).is_admin
    with pytest.raises(UserErrorException, match="belongs to another user"):
        identity.users.sign_in("root", "https://other", "7", is_admin=False, roles={})


def test_roles_of_groups_follow_the_groups(identity: IdentityService) -> None:
    def sign_in(is_admin: bool, **roles: str) -> None:
        identity.users.sign_in("ada", "https://id", "1", is_admin=is_admin, roles=roles)

    sign_in(True, vision="owner", nlp="reader")
    identity.members.grant("vision", "ada", "contributor")
    _, secret = identity.tokens.create("ada")
    found = identity.accounts.find_by_token(secret)
    assert found is not None and found.is_admin and set(found.roles["vision"]) == {"owner", "contributor"}
    sign_in(False)
    found = identity.accounts.find_by_token(secret)
    # What a person has granted stays.
    assert found is not None and not found.is_admin and found.roles == {"vision": ("contributor",)}


def test_a_repeated_creation_leaves_one_token(identity: IdentityService) -> None:
    identity.users.add("ada")
    _, first = identity.tokens.create("ada", token_id="t1")
    _, second = identity.tokens.create("ada", token_id="t1")
    assert identity.accounts.find_by_token(first) is None and identity.accounts.find_by_token(second)
    assert len(identity.tokens.list("ada")) == 1


def test_the_database_opens_again(place: tuple[Path, str]) -> None:
    first = IdentityService(open_database(*place))
    first.users.add("ada")
    _, secret = first.tokens.create("ada")
    key = first.read_cookie_key()
    first.close()
    second = IdentityService(open_database(*place))
    assert second.accounts.find_by_token(secret) and second.read_cookie_key() == key
    second.close()


def test_a_newer_database_is_refused(place: tuple[Path, str]) -> None:
    database = open_database(*place)
    with database.write() as connection:
        connection.execute(update(schema.version).values(version=schema.VERSION + 1))
    database.close()
    with pytest.raises(WorkspaceException, match="newer Trainmaster"):
        open_database(*place)


def test_pending_migrations_are_one_transaction(place: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    open_database(*place).close()
    from trainmaster.server.identity import migrations

    def add(connection) -> None:
        connection.execute(text("CREATE TABLE further (name TEXT)"))

    def fail(connection) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 2)
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, add, fail))
    with pytest.raises(RuntimeError):
        open_database(*place)
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS[:-1], lambda connection: None))
    database = open_database(*place)
    with database.read() as connection:
        assert migrations.read_version(connection) == schema.VERSION
    database.close()


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    open_database(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "server.db").stat().st_mode) == 0o600


def test_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceException, match="cannot be used") as caught:
        open_database(tmp_path, f"postgresql://me:hidden@/db?host={tmp_path}")
    assert "hidden" not in caught.value.message
    with pytest.raises(WorkspaceException, match="not a PostgreSQL database"):
        open_database(tmp_path, "mysql://me@host/db")
