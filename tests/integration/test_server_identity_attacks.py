"""Attacks on who may do what. Each test fails when the defence it tries is taken away.

The classes are those of the reference of issue 15: code that runs without authentication (5), default passwords and
open sign-up (6), ids of other workspaces and users (11), secrets in answers and logs (13), guessing and leaking tokens
(14). Routes past the authentication (4) are in `test_server_permissions.py`, other sites in the browser (7) in
`test_server_sign_in.py`.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended
from tests.server_people import People, add_people, create_run, make_run_token
from tests.server_process import ServerProcess

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.server.assembly import make_table
from trainmaster.server.permissions import Permission

VISION, OTHER = "/api/v1/workspaces/vision", "/api/v1/workspaces/other"
KEY = "a-key-that-nobody-may-read"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


# 5: code that runs without authentication

# Operations that start a program, or decide what a later one is.
RUN_CODE = {
    "runs.submit",
    "sweeps.submit",
    "services.deploy",
    "services.update",
    "environments.build",
    "environments.put",
    "images.create",
    "targets.put",
    "targets.ask_hosts",
    "targets.ask_kubernetes",
    "targets.ask_slurm",
    "datastores.put",
}


def test_whatever_runs_code_needs_a_contributor() -> None:
    strong = (Permission.CONTRIBUTE, Permission.OWN, Permission.ADMINISTER)
    rows = [route for route in make_table() if route.operation in RUN_CODE]
    assert {route.operation for route in rows} == RUN_CODE
    assert [route.path for route in rows if route.permission not in strong or route.open_to_jobs] == []


@pytest.mark.parametrize("who", ["nobody", "stranger", "elsewhere", "reader", "job"])
def test_nobody_else_submits(people: People, who: str) -> None:
    before = people.server.call("vision", "runs.list", query={})
    run = {"id": "attack", "experiment": "attack", "status": "Queued", "created_at": 1.0, "spec": "{}"}
    assert people.call(who, "runs.submit", run=run).status in (401, 403)
    assert people.call(who, "runs.create", runs=[run]).status in (401, 403)
    assert people.ask(who, "POST", f"{VISION}/runs", run).status in (401, 403, 405)
    assert [run["id"] for run in people.server.call("vision", "runs.list", query={})] == [run["id"] for run in before]


def test_the_dispatcher_is_for_the_account_of_the_server_alone(people: People) -> None:
    """Its socket asks nobody for a token."""
    folder = people.server.root / "workspaces"
    assert folder.stat().st_mode & 0o077 == 0 and people.server.root.stat().st_mode & 0o077 == 0
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inodes = {line.split()[9] for line in listening if line.split()[3] == "0A"}
    dispatcher = int((folder / "vision/dispatcher.lock").read_text())
    opened = {str(link.readlink()) for link in Path(f"/proc/{dispatcher}/fd").iterdir() if link.is_symlink()}
    assert not opened & {f"socket:[{inode}]" for inode in inodes}


# 6: default passwords and open sign-up


def test_there_is_no_password_and_no_sign_up(people: People) -> None:
    import base64

    for pair in ("admin:admin", "admin:password1234", "admin:", ":", f"admin:{people.server.token}"):
        basic = "Basic " + base64.b64encode(pair.encode()).decode()
        assert people.server.request("GET", "/api/v1/me", token="", headers={"Authorization": basic}).status == 401
    for who in ("nobody", "stranger", "owner"):
        assert people.ask(who, "POST", "/api/v1/users", {"name": "mallory"}).status in (401, 403)
        assert people.ask(who, "PATCH", "/api/v1/users/stranger", {"is_admin": True}).status in (401, 403)
    assert "mallory" not in [
        user["name"] for user in people.ask("administrator", "GET", "/api/v1/users").json()["users"]
    ]


def test_each_server_has_its_own_first_token(people: People, tmp_path: Path) -> None:
    trainmaster = str(Path(sys.executable).with_name("trainmaster"))
    made = [
        json.loads(
            subprocess.run(
                [trainmaster, "server", "init", "--root", str(tmp_path / name), "--json"],
                check=True,
                capture_output=True,
            ).stdout
        )["token"]
        for name in ("one", "two")
    ]
    assert len({*made, people.server.token}) == 3 and all(len(token) == 46 for token in made)
    assert people.server.request("GET", "/api/v1/me", token=made[0]).status == 401
    # Nor is it anywhere on the disk.
    for file in (tmp_path / "one").rglob("*"):
        assert not file.is_file() or made[0].encode() not in file.read_bytes()


def test_an_empty_database_lets_nobody_in(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root")
    try:
        server.stop()
        with sqlite3.connect(server.root / "server.db") as database:
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("DELETE FROM users")
        database.close()
        server.start()
        for token in ("", "tm_", server.token, "tm_" + "A" * 43):
            assert server.request("GET", "/api/v1/me", token=token).status == 401
    finally:
        server.end()


# 11: ids of other workspaces and users


def test_an_id_of_another_workspace_is_worth_nothing(people: People) -> None:
    """`elsewhere` owns `other`, and knows the ids of `vision`."""
    run_id = people.run_id
    for path in (f"runs/{run_id}", f"runs/{run_id}/metrics", f"runs/{run_id}/files", f"runs/{run_id}/logs"):
        assert people.ask("elsewhere", "GET", f"{VISION}/{path}").status == 403
        assert people.ask("elsewhere", "GET", f"{OTHER}/{path}").status == 404
    # Deleting what is not there succeeds, and deletes nothing.
    assert people.call("elsewhere", "runs.delete", "other", run_ids=[run_id]).json()["result"]["bytes"] == 0
    for operation in ("runs.get", "runs.cancel", "runs.metrics", "runs.tags.set"):
        arguments: dict[str, Any] = {"run_id": run_id}
        if operation == "runs.tags.set":
            arguments["tags"] = {"stolen": "yes"}
        assert people.call("elsewhere", operation, "other", **arguments).status in (400, 404), operation
    assert people.server.call("vision", "runs.get", run_id=run_id)["ended_at"] is None
    path = "files/outputs/planted.txt"
    answer = people.ask(
        "elsewhere", "PUT", f"{OTHER}/runs/{run_id}/{path}", b"x", Content_Type="application/octet-stream"
    )
    assert answer.status == 404
    assert not (people.server.root / "workspaces/vision/runs" / run_id / path).exists()


def test_a_contributor_does_not_delete_what_others_made(people: People) -> None:
    """What may be edited may not therefore be deleted."""
    for route in make_table():
        if route.operation.endswith(".delete") and route.operation.partition(".")[0] in (
            "runs",
            "experiments",
            "models",
            "datasets",
            "datastores",
            "images",
            "targets",
        ):
            assert route.permission in (Permission.OWN, Permission.ADMINISTER), route.path


def test_a_submitter_cannot_be_invented(people: People) -> None:
    people.server.call("vision", "experiments.ensure", name="invented")
    record = {"id": "invented-1", "experiment": "invented", "status": "Running", "created_at": 1.0, "started_at": 1.0}
    made = people.call("contributor", "runs.create", runs=[{**record, "type": "run", "submitted_by": "admin"}])
    assert made.status == 200 and made.json()["result"][0]["submitted_by"] == "contributor"


def test_roles_in_one_workspace_say_nothing_about_another(people: People) -> None:
    for method, path in (
        ("GET", f"{VISION}/members"),
        ("PUT", f"{VISION}/members/elsewhere"),
        ("GET", f"{VISION}/audit"),
        ("DELETE", f"{VISION}/members/owner"),
    ):
        assert people.ask("elsewhere", method, path, {"role": "owner"} if method == "PUT" else None).status == 403


# 13: secrets in answers and logs


def test_values_of_secrets_and_keys_of_datastores_are_in_no_answer(people: People) -> None:
    secret = {"hidden": {"value": KEY, "content_type": ""}}
    assert people.call("contributor", "secrets.put", secrets=secret).status == 200
    store = {"name": "keyed", "url": f"az://user:{KEY}@container/x", "options": {"account_key": KEY, "sas_token": KEY}}
    answers = [people.call("contributor", "datastores.put", record=store)]
    for who in ("reader", "contributor", "owner", "administrator"):
        answers += [
            people.call(who, "secrets.list"),
            people.call(who, "datastores.list"),
            people.call(who, "datastores.get", name="keyed"),
            people.call(who, "datastores.describe"),
            people.ask(who, "GET", f"{VISION}/secrets"),
            people.ask(who, "GET", f"{VISION}/datastores"),
            people.ask(who, "GET", f"{VISION}/datastores/keyed"),
        ]
    answers.append(
        people.ask("owner", "PUT", f"{VISION}/datastores/other-key", {"url": store["url"], "options": {"key": KEY}})
    )
    # Wrong requests are repeated in no error either.
    answers.append(people.call("contributor", "secrets.put", secrets={"hidden": {"value": [KEY]}}))
    answers.append(people.call("contributor", "secrets.put", secrets=secret, more=KEY))
    assert [answer.status for answer in answers[:-2]] == [200] * (len(answers) - 2)
    assert [answer for answer in answers if KEY.encode() in answer.body] == []
    for who in ("reader", "administrator"):
        assert people.call(who, "secrets.get", names=["hidden"]).status == 403
        assert people.call(who, "secrets.fetch", run_id=people.run_id, names=["hidden"]).status == 403
    # Nor are they in the log, the audit log, or in kept answers.
    assert KEY not in people.server.log()
    assert_not_in_database(people, KEY)


def assert_not_in_database(people: People, text: str) -> None:
    for name in ("server.db", "server.db-wal"):
        file = people.server.root / name
        assert not file.exists() or text.encode() not in file.read_bytes()


def test_tokens_are_in_no_file_of_the_server(people: People) -> None:
    answer = people.ask("reader", "POST", "/api/v1/tokens", {"label": "x"}, Idempotency_Key="secret-1")
    token = answer.json()["token"]
    people.tokens["fresh"] = token
    people.ask("fresh", "POST", "/api/v1/users", {"name": token.lower()})
    people.ask("fresh", "GET", f"/api/v1/me?x={token}")
    assert people.ask("fresh", "GET", "/api/v1/me").status == 200
    assert_not_in_database(people, token)
    assert token not in people.server.log() and token[3:] not in people.server.log()


def test_a_job_has_a_token_for_its_run_which_no_log_shows(people: People, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import json, os, urllib.error, urllib.request\n"
        "server, token = os.environ['TRAINMASTER_SERVER'], os.environ['TRAINMASTER_TOKEN']\n"
        "def call(operation, **arguments):\n"
        "    url = server + '/api/v1/workspaces/vision/operations/' + operation\n"
        "    headers = {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'}\n"
        "    request = urllib.request.Request(url, json.dumps(arguments).encode(), headers)\n"
        "    try:\n"
        "        return urllib.request.urlopen(request).status\n"
        "    except urllib.error.HTTPError as error:\n"
        "        return error.code\n"
        "run = os.environ['TRAINMASTER_RUN_ID']\n"
        "found = [call('models.list', query={}), call('secrets.fetch', run_id=run, names=['none']),\n"
        "         call('runs.list', query={}), call('runs.cancel', run_id=run)]\n"
        "open('outputs/found.json', 'w').write(json.dumps(found))\n"
        "print('environment', dict(os.environ))\n"
        "print('token', token)\n"
    )
    workspace = Workspace(path=people.server.root / "workspaces" / "vision")
    estimator = Estimator(str(tmp_path), entry_script="train.py", user_managed=True, compute_target="local")
    run = Experiment(workspace, "jobs").submit(estimator)
    assert ended(run)["status"] == "Completed"
    path = f"{VISION}/runs/{run.id}"
    assert people.ask("reader", "GET", f"{path}/files/outputs/found.json").json() == [200, 200, 403, 403]
    token = make_run_token(people.server, "vision", run.id)
    # It is worth nothing any more; while the run was active, a reader of its log could have used it.
    assert people.server.request("GET", f"{path}/files", token=token).status == 401
    logs = people.ask("reader", "GET", f"{path}/logs").json()["logs"]
    texts = [people.ask("reader", "GET", f"{path}/logs/{each['name']}") for each in logs]
    texts += [people.ask("reader", "GET", f"{path}/files/{each['name']}") for each in logs]
    assert any(b"environment {" in text.body for text in texts)
    assert [text for text in texts if token.encode() in text.body] == []


# 14: guessing and leaking tokens


def test_wrong_tokens_are_all_answered_alike(people: People) -> None:
    revoked = people.ask("reader", "POST", "/api/v1/tokens", {}).json()
    people.ask("reader", "DELETE", f"/api/v1/tokens/{revoked['description']['id']}")
    expired = people.ask("reader", "POST", "/api/v1/tokens", {"days": 1e-9}).json()
    ended_run = create_run(people.server, "vision")
    people.server.call("vision", "runs.finish", run_id=ended_run, status="Completed")
    wrong = [revoked["token"], expired["token"], "tm_" + "A" * 43, "tm_", "x", people.server.token[:-1]]
    answers = set()
    for token in wrong:
        answer = people.server.request("GET", "/api/v1/me", token=token, headers={"X-Request-Id": "same-request"})
        answers.add((answer.status, answer.body))
    assert len(answers) == 1 and answers.pop()[0] == 401


def test_what_exists_is_not_told_to_strangers(people: People) -> None:
    """A workspace, run or user that exists is answered like one that does not."""

    def ask(path: str) -> tuple[int, bytes]:
        answer = people.ask("stranger", "GET", path, X_Request_Id="same-request")
        return answer.status, answer.body.replace(b"vision", b"").replace(b"nothing", b"")

    assert ask(VISION) == ask("/api/v1/workspaces/nothing") and ask(VISION)[0] == 403
    assert ask(f"{VISION}/runs/{people.run_id}") == ask("/api/v1/workspaces/nothing/runs/none")
    assert ask("/api/v1/users/owner") == ask("/api/v1/users/nothing")
    assert people.ask("stranger", "GET", "/api/v1/workspaces").json()["workspaces"] == []


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "auth", "authorization", "Authorization"])
def test_a_token_in_an_address_is_not_accepted(people: People, name: str) -> None:
    """Addresses are in histories, logs of proxies and `Referer` headers."""
    token = people.tokens["owner"]
    for path in ("/api/v1/me", VISION):
        assert people.server.request("GET", f"{path}?{name}={token}", token="").status in (400, 401)
    assert people.server.request("GET", "/api/v1/me", token="", headers={"Cookie": f"{name}={token}"}).status == 401
    assert token not in people.server.log()


def test_tokens_are_found_by_an_index(people: People) -> None:
    """One look-up by digest: how long it takes says nothing about how much of a token is right."""
    with sqlite3.connect(people.server.root / "server.db") as database:
        plan = database.execute("EXPLAIN QUERY PLAN SELECT * FROM tokens WHERE digest = x'00'").fetchall()
        columns = {row[1] for row in database.execute("PRAGMA table_info(tokens)")}
    database.close()
    assert "USING INDEX" in plan[0][3] and "token" not in columns and "secret" not in columns


def test_errors_say_nothing_about_the_server_itself(people: People) -> None:
    """Neither versions of programs nor paths nor code."""
    for path in ("/api/v1/nothing", f"{VISION}/runs/%00", "/api/v1/me?x=1", "/../etc/passwd", f"{VISION}/runs?limit=x"):
        for who in ("nobody", "stranger"):
            answer = people.ask(who, "GET", path)
            text = answer.body.decode()
            assert str(people.server.root) not in text and "Traceback" not in text and "site-packages" not in text
            assert "server" not in answer.headers
