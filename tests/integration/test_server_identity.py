"""Users, tokens, roles, sessions, the audit log and idempotency keys of a real server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import until
from tests.postgresql import run_server
from tests.server_people import People, add_people, add_user
from tests.server_process import Answer, ServerProcess

TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))
VISION = "/api/v1/workspaces/vision"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


def command(people: People, *words: str) -> Any:
    """The JSON of a command on the server's root."""
    line = [TRAINMASTER, "server", *words, "--root", str(people.server.root), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def create_token(people: People, who: str, **facts: Any) -> str:
    answer = people.ask(who, "POST", "/api/v1/tokens", facts)
    assert answer.status == 200, answer
    text: str = answer.json()["token"]
    return text


def read_log(people: People, **query: Any) -> list[dict[str, Any]]:
    words = "&".join(f"{name}={value}" for name, value in query.items())
    entries: list[dict[str, Any]] = people.ask("administrator", "GET", f"/api/v1/audit?{words}").json()["entries"]
    return entries


# The command line


def test_commands_work_while_the_server_runs(people: People) -> None:
    command(people, "user", "add", "grace")
    made = command(people, "token", "create", "grace", "--label", "laptop", "--days", "30")
    people.tokens["grace"] = made["token"]
    assert people.ask("grace", "GET", "/api/v1/me").json()["roles"] == {}
    command(people, "role", "grant", "grace", "reader", "--workspace", "vision")
    until(lambda: people.ask("grace", "GET", VISION).status == 200)
    assert {"user": "grace", "role": "reader", "is_by_group": False} in command(
        people, "role", "list", "--workspace", "vision"
    )
    command(people, "role", "revoke", "grace", "--workspace", "vision")
    until(lambda: people.ask("grace", "GET", VISION).status == 403)
    listed = {token["id"]: token for token in command(people, "token", "list", "grace")}
    assert listed[made["id"]]["label"] == "laptop" and "token" not in listed[made["id"]]
    command(people, "token", "revoke", made["id"])
    until(lambda: people.ask("grace", "GET", "/api/v1/me").status == 401)
    command(people, "user", "remove", "grace")
    assert "grace" not in {user["name"] for user in command(people, "user", "list")}
    routes = [entry["route"] for entry in read_log(people, limit=1000)]
    assert {"trainmaster server user add", "trainmaster server token revoke"} <= set(routes)


@pytest.mark.parametrize(
    "words",
    [
        ("user", "remove", "nobody-of-this-name"),
        ("user", "remove", "admin"),
        ("token", "revoke", "none"),
        ("role", "grant", "reader", "owner", "--workspace", "none"),
        ("role", "grant", "none", "owner", "--workspace", "vision"),
        ("role", "grant", "reader", "owner"),
        ("login-link", "--user", "none"),
        ("run", "--port", "0"),
    ],
)
def test_commands_that_cannot_be_carried_out(people: People, words: tuple[str, ...]) -> None:
    line = [TRAINMASTER, "server", *words, "--root", str(people.server.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr


# Tokens


def test_a_token_is_restricted_by_its_scope(people: People) -> None:
    people.tokens["here"] = create_token(people, "administrator", workspace="vision")
    people.tokens["reads"] = create_token(people, "administrator", role="reader")
    people.tokens["low"] = create_token(people, "owner", workspace="vision", role="contributor")
    people.tokens["high"] = create_token(people, "reader", workspace="vision", role="owner")
    people.tokens["one run"] = create_token(people, "contributor", workspace="vision", run_id=people.run_id)
    people.tokens["no run"] = create_token(people, "reader", workspace="vision", run_id=people.run_id)
    other = "/api/v1/workspaces/other"
    expected = {
        ("here", "GET", f"{VISION}/audit"): 200,
        ("here", "GET", other): 403,
        ("here", "GET", "/api/v1/users"): 403,
        ("reads", "GET", other): 200,
        ("reads", "GET", f"{VISION}/audit"): 403,
        ("reads", "GET", "/api/v1/users"): 403,
        ("low", "GET", VISION): 200,
        ("low", "GET", f"{VISION}/audit"): 403,
        ("high", "GET", VISION): 200,
        ("high", "GET", f"{VISION}/audit"): 403,
        ("one run", "GET", VISION): 403,
        ("one run", "GET", f"{VISION}/runs/{people.run_id}/files"): 200,
        ("no run", "GET", f"{VISION}/runs/{people.run_id}/files"): 403,
    }
    assert {key: people.ask(*key).status for key in expected} == expected


def test_a_token_never_creates_more_than_itself(people: People) -> None:
    people.tokens["narrow"] = create_token(people, "owner", workspace="vision")
    for who in ("narrow", "job"):
        assert people.ask(who, "POST", "/api/v1/tokens", {}).status in (401, 403)
    # Nor does the new one outlive the old one.
    people.tokens["short"] = create_token(people, "owner", days=1)
    before = time.time()
    for days in (0, 365):
        made = people.ask("short", "POST", "/api/v1/tokens", {"days": days}).json()["description"]
        assert made["expires_at"] <= before + 86400 + 60
    # Nor is it for somebody else.
    assert people.ask("owner", "POST", "/api/v1/tokens", {"user": "admin"}).status == 403


def test_users_see_and_revoke_their_own_tokens_only(people: People) -> None:
    mine = people.ask("reader", "POST", "/api/v1/tokens", {"label": "mine"}).json()
    listed = people.ask("reader", "GET", "/api/v1/tokens").json()["tokens"]
    assert {token["user"] for token in listed} == {"reader"}
    assert people.ask("reader", "GET", "/api/v1/tokens?user=owner").status == 403
    path = f"/api/v1/tokens/{mine['description']['id']}"
    # As if it did not exist.
    assert people.ask("owner", "DELETE", path).body.replace(b"owner", b"") != b""
    assert (
        people.ask("owner", "DELETE", path).status == people.ask("owner", "DELETE", "/api/v1/tokens/none").status == 404
    )
    people.tokens["mine"] = mine["token"]
    assert people.ask("mine", "GET", "/api/v1/me").status == 200
    assert people.ask("reader", "DELETE", path).status == 200
    assert people.ask("mine", "GET", "/api/v1/me").status == 401


def test_the_last_use_of_a_token_is_shown(people: People) -> None:
    people.tokens["used"] = create_token(people, "reader", label="used")

    def last_use() -> float | None:
        listed = people.ask("reader", "GET", "/api/v1/tokens").json()["tokens"]
        return next(token["last_used_at"] for token in listed if token["label"] == "used")

    assert last_use() is None
    people.ask("used", "GET", "/api/v1/me")
    until(lambda: last_use() is not None)


def test_owners_give_roles(people: People) -> None:
    members = f"{VISION}/members"
    assert people.ask("owner", "PUT", f"{members}/stranger", {"role": "reader"}).status == 200
    assert people.ask("stranger", "GET", VISION).status == 200
    assert {"user": "stranger", "role": "reader", "is_by_group": False} in people.ask("reader", "GET", members).json()[
        "members"
    ]
    assert people.ask("contributor", "PUT", f"{members}/contributor", {"role": "owner"}).status == 403
    assert people.ask("owner", "DELETE", f"{members}/stranger").status == 200
    assert people.ask("stranger", "GET", VISION).status == 403
    assert people.ask("owner", "PUT", f"{members}/none", {"role": "reader"}).status == 404
    assert people.ask("owner", "PUT", f"{members}/stranger", {"role": "god"}).status == 400


def test_a_removed_user_is_out_at_once(people: People) -> None:
    people.tokens["leaver"] = add_user(people.server, "leaver")
    assert people.ask("leaver", "GET", "/api/v1/me").status == 200
    assert people.ask("administrator", "DELETE", "/api/v1/users/leaver").status == 200
    assert people.ask("leaver", "GET", "/api/v1/me").status == 401
    assert people.ask("administrator", "DELETE", "/api/v1/users/admin").status == 400


# The audit log


def test_every_change_is_in_the_log_with_its_outcome(people: People) -> None:
    path = f"{VISION}/operations/experiments.ensure"
    people.ask("contributor", "POST", path, {"name": "audited"}, X_Request_Id="audited-1")
    people.ask("contributor", "POST", path, {"name": 5}, X_Request_Id="audited-2")
    people.ask("reader", "POST", path, {"name": "refused"}, X_Request_Id="audited-3")
    people.ask("reader", "GET", VISION, X_Request_Id="audited-4")
    people.ask("nobody", "POST", path, {"name": "nobody"}, X_Request_Id="audited-5")
    found = {entry["request_id"]: entry for entry in read_log(people)}
    assert {key: found[key]["status"] for key in found if key.startswith("audited")} == {
        "audited-1": 200,
        "audited-2": 400,
        "audited-3": 403,
    }
    entry = found["audited-1"]
    assert (entry["caller"], entry["operation"], entry["workspace"]) == ("contributor", "experiments.ensure", "vision")
    assert entry["target"] == path and entry["credential"].startswith("token ") and entry["address"] == "127.0.0.1"


def test_uploads_that_come_often_are_counted(people: People) -> None:
    run = f"{VISION}/runs/{people.run_id}"
    place = 0
    for number in range(20):
        line = b'{"value": %d}\n' % number
        assert people.ask("job", "PUT", f"{run}/journals/worker?offset={place}", line).status == 200
        place += len(line)
    contents = [f"content {number}".encode() for number in range(5)]
    for content in contents:
        digest = hashlib.sha256(content).hexdigest()
        assert people.ask("contributor", "PUT", f"{VISION}/contents/models/{digest}", content).status == 200
    refused = people.ask("reader", "PUT", f"{VISION}/contents/models/{digest}", content, X_Request_Id="refused-upload")
    assert refused.status == 403
    entries = read_log(people, limit=1000)
    found = [entry for entry in entries if entry["target"] == f"{run}/journals/*"]
    # A new hour may have begun.
    assert sum(entry["count"] for entry in found) == 20 and len(found) <= 2
    assert {(entry["caller"], entry["credential"], entry["status"]) for entry in found} == {
        ("admin", f"run {people.run_id}", 200)
    }
    found = [entry for entry in entries if entry["target"] == f"{VISION}/contents/models/*"]
    assert {(entry["caller"], entry["status"]) for entry in found} == {("contributor", 200)}
    assert sum(entry["count"] for entry in found) == 5
    assert [entry["status"] for entry in entries if entry["request_id"] == "refused-upload"] == [403]


def test_owners_read_the_log_of_their_workspace_in_pages(people: People) -> None:
    for number in range(5):
        people.call("contributor", "experiments.ensure", name=f"page-{number}")
    people.ask("administrator", "POST", "/api/v1/users", {"name": "unrelated"})
    seen: list[int] = []
    before: int | None = 1 << 62
    while before is not None:
        page = people.ask("owner", "GET", f"{VISION}/audit?limit=3&before={before}").json()
        assert {entry["workspace"] for entry in page["entries"]} <= {"vision"}
        seen += [entry["seq"] for entry in page["entries"]]
        before = page["before"]
    assert seen == sorted(set(seen), reverse=True) and len(seen) >= 5
    assert people.ask("contributor", "GET", f"{VISION}/audit").status == 403


# Idempotency keys


def test_the_same_key_gives_the_first_answer_again(people: People) -> None:
    path = "/api/v1/users"
    first = people.ask("administrator", "POST", path, {"name": "once"}, Idempotency_Key="once-1")
    assert people.ask("administrator", "DELETE", "/api/v1/users/once").status == 200
    again = people.ask("administrator", "POST", path, {"name": "once"}, Idempotency_Key="once-1")
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    # It was not carried out again.
    assert people.ask("administrator", "GET", "/api/v1/users/once").status == 404
    other = people.ask("administrator", "POST", path, {"name": "twice"}, Idempotency_Key="once-1")
    assert other.status == 422 and people.ask("administrator", "GET", "/api/v1/users/twice").status == 404
    # The key of another user is another key.
    assert people.ask("owner", "POST", "/api/v1/tokens", {}, Idempotency_Key="once-1").status == 200
    assert people.ask("administrator", "POST", path, {"name": "x"}, Idempotency_Key="a b").status == 400


def test_an_answer_to_one_user_is_not_given_to_another(people: People) -> None:
    body = {"name": "shared-name"}
    assert people.ask("administrator", "POST", "/api/v1/users", body, Idempotency_Key="guess").status == 200
    assert people.ask("owner", "POST", "/api/v1/users", body, Idempotency_Key="guess").status == 403


def test_the_same_change_at_the_same_time_is_carried_out_once(people: People) -> None:
    answers: list[Answer] = []
    begin = threading.Barrier(8)

    def send() -> None:
        begin.wait()
        body = {"name": "racing"}
        answers.append(people.ask("administrator", "POST", "/api/v1/workspaces", body, Idempotency_Key="racing"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {200} and len({answer.body for answer in answers}) == 1
    made = [entry for entry in read_log(people, limit=1000) if entry["route"] == "/api/v1/workspaces"]
    assert len([entry for entry in made if entry["status"] == 200]) == 3


def test_a_repeated_creation_of_a_token_leaves_one(people: People) -> None:
    body = {"label": "repeated"}
    first = people.ask("reader", "POST", "/api/v1/tokens", body, Idempotency_Key="token-1").json()
    second = people.ask("reader", "POST", "/api/v1/tokens", body, Idempotency_Key="token-1").json()
    people.tokens.update(first=first["token"], second=second["token"])
    assert first["description"]["id"] == second["description"]["id"]
    # The text of the first was lost on the way; it is worth nothing.
    assert people.ask("first", "GET", "/api/v1/me").status == 401
    assert people.ask("second", "GET", "/api/v1/me").status == 200
    with sqlite3.connect(people.server.root / "server.db") as database:
        assert b"tm_" not in b"".join(row[0] or b"" for row in database.execute("SELECT body FROM idempotency"))
    database.close()


def test_a_kill_between_change_and_answer(people: People) -> None:
    server = people.server
    dispatcher = int((server.root / "workspaces/vision/dispatcher.lock").read_text())
    body, key = {"name": "killed"}, "killed-1"
    path = f"{VISION}/operations/experiments.ensure"

    def send() -> Answer:
        return people.ask("contributor", "POST", path, body, Idempotency_Key=key, X_Request_Id="killed-request")

    def is_pending() -> bool:
        with sqlite3.connect(server.root / "server.db") as database:
            found = database.execute("SELECT count(*) FROM idempotency WHERE key = ? AND status IS NULL", (key,))
            count = found.fetchone()[0]
        database.close()
        return bool(count)

    def send_in_vain() -> None:
        with pytest.raises(OSError):
            send()

    os.kill(dispatcher, signal.SIGSTOP)
    try:
        thread = threading.Thread(target=send_in_vain)
        thread.start()
        until(is_pending)
        server.kill()
        thread.join()
    finally:
        os.kill(dispatcher, signal.SIGCONT)
    server.start()
    answer = send()
    assert answer.status == 200 and answer.json()["result"]["name"] == "killed"
    assert "idempotency-replayed" not in answer.headers
    assert send().headers["idempotency-replayed"] == "true"
    found = [entry["status"] for entry in read_log(people) if entry["request_id"] == "killed-request"]
    assert found == [200, None]


# PostgreSQL


@pytest.mark.timeout(600)
def test_the_unit_tests_pass_on_postgresql() -> None:
    tests = Path(__file__).parents[1] / "unit/server/identity"
    with run_server() as server:
        variables = {**os.environ, "TRAINMASTER_TESTS_POSTGRESQL": str(server.folder)}
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*line, str(tests / "test_accounts.py"), str(tests / "test_audit.py")],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, f"{done.stdout[-10_000:]}\n{done.stderr[-3000:]}"
