"""Who may call what: every route x method x caller of the real table, against a real server.

Each request has a query argument that no route has. Whoever lacks the permission gets 401 or 403; whoever has it gets
400 for the argument, and nothing happens.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator

import pytest
from tests.conftest import PATIENCE
from tests.server_people import People, add_people, create_run, make_run_token
from tests.server_process import Answer, ServerProcess

from trainmaster.server.api.table import Route, Table
from trainmaster.server.assembly import make_table
from trainmaster.server.permissions import Permission
from trainmaster.shared.job_spec import EnvironmentSpec, JobSpec, dump_spec

NOBODY, JOB = "nobody", "job"
PEOPLE = ("stranger", "elsewhere", "reader", "contributor", "owner", "administrator")
# Written out, not computed with the code that is tested.
ALLOWED = {
    Permission.PUBLIC: {NOBODY, *PEOPLE},
    Permission.SIGNED_IN: set(PEOPLE),
    Permission.READ: {"reader", "contributor", "owner", "administrator"},
    Permission.CONTRIBUTE: {"contributor", "owner", "administrator"},
    Permission.OWN: {"owner", "administrator"},
    Permission.ADMINISTER: {"administrator"},
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "POST2")
TABLE = make_table()
PATHS = sorted({route.path for route in TABLE})
# The paths of operations differ in one word only: where many requests are sent, a few stand for all.
FEW_PATHS = [
    *(path for path in PATHS if "/operations/" not in path),
    *[path for path in PATHS if "/operations/" in path][:3],
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


class Line:
    """One connection that is used again and again."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._connection = http.client.HTTPConnection("127.0.0.1", people.server.port, timeout=PATIENCE)

    def send(self, who: str, method: str, path: str) -> tuple[int, bytes]:
        headers = {} if who == NOBODY else {"Authorization": f"Bearer {self._people.tokens[who]}"}
        self._connection.request(method, path, headers=headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def line(people: People) -> Iterator[Line]:
    found = Line(people)
    yield found
    found.close()


def fill(path: str, people: People) -> str:
    """A path with values: the workspace and the run exist."""
    path = path.replace("{workspace}", "vision").replace("{run_id}", people.run_id)
    return re.sub(r"\{\w+(:path)?\}", "x", path.replace("{version}", "1"))


def may(who: str, route: Route) -> bool:
    if who == JOB:
        return route.open_to_jobs
    return who in ALLOWED[route.permission] and not route.only_for_jobs


@pytest.mark.parametrize("who", [NOBODY, *PEOPLE, JOB])
def test_every_route(people: People, line: Line, who: str) -> None:
    wrong = []
    for route in TABLE:
        path = f"{fill(route.path, people)}?no_such_argument=1"
        status, body = line.send(who, route.method, path)
        if route.is_mlflow:
            # MLflow ignores what it does not know, and refuses what is missing.
            is_outside = who == JOB and "{workspace}" not in route.path
            expected = 401 if who == NOBODY or is_outside else 403
            is_allowed = may(who, route) or route.permission is Permission.PUBLIC
            is_right = (status not in (401, 403)) if is_allowed else status == expected
        elif route.ignores_query:
            # A page without data. In a checkout whose pages were never built there is none.
            is_right = status in (200, 404) or (who == JOB and status == 401)
        elif may(who, route):
            is_right = status == 400 and (route.method == "HEAD" or b"no_such_argument" in body)
        elif who == NOBODY:
            is_right = status == 401
        else:
            # The token of a job is worth nothing outside its workspace.
            is_right = status == 403 or (who == JOB and "{workspace}" not in route.path and status == 401)
        if not is_right:
            wrong.append((route.method, route.path, status, body[:200]))
    assert wrong == []


def test_every_method_of_every_path(people: People, line: Line) -> None:
    """A method that no route has is not a way past the permission of another."""
    known = {(route.method, route.path): route for route in TABLE}
    wrong = []
    for path in FEW_PATHS:
        for method in METHODS:
            route = known.get((method, path)) or (known.get(("GET", path)) if method == "HEAD" else None)
            expected = {405, 400, 501}
            if route is not None:
                expected = {400} if may(NOBODY, route) else {401}
                if route.ignores_query and may(NOBODY, route):
                    expected = {200, 404}
            status, body = line.send(NOBODY, method, f"{fill(path, people)}?no_such_argument=1")
            if status not in expected:
                wrong.append((method, path, status, body[:200]))
    assert wrong == []


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path + "/",
        lambda path: "/" + path,
        lambda path: path.replace("/api/", "//api/"),
        lambda path: path.replace("/v1/", "/v1//"),
        lambda path: path.replace("/v1/", "/V1/"),
        lambda path: path.upper(),
        lambda path: path.replace("/v1/", "/v1%2f"),
        lambda path: path.replace("/v1/", "/v1%2F"),
        lambda path: path.replace("/v1/", "/v1/./"),
        lambda path: path.replace("/v1/", "/v1/x/../"),
        lambda path: path.replace("/v1/", "/v1/%2e%2e/v1/"),
        lambda path: path.replace("/v1/", "/v1;x/"),
        lambda path: path.replace("/v1/", "/v1%00/"),
        lambda path: path + ";.css",
        lambda path: path + "%3f.js",
        lambda path: path + "/health",
        lambda path: path + "/../../../../health",
        lambda path: "/health/.." + path,
        lambda path: "/health;" + path,
        lambda path: "/login/.." + path,
        lambda path: "/static/.." + path,
        lambda path: path.replace("/api/v1/", "/ajax-api/v1/"),
        lambda path: path.replace("/api/v1/", "/api/v2/"),
        lambda path: path.replace("/api/", "/%61pi/"),
    ],
)
def test_no_spelling_of_a_path_leads_past_the_permission(people: People, line: Line, change) -> None:
    protected = [route for route in TABLE if route.permission is not Permission.PUBLIC and route.path in FEW_PATHS]
    wrong = []
    for route in protected:
        path = change(fill(route.path, people))
        status, body = line.send(NOBODY, route.method, path)
        if status not in (400, 401, 404, 405):
            wrong.append((route.method, path, status, body[:200]))
    assert wrong == []


@pytest.mark.parametrize(
    "headers",
    [
        {"X-HTTP-Method-Override": "GET"},
        {"X-Original-URL": "/health"},
        {"X-Rewrite-URL": "/health"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-User": "admin"},
        {"Remote-User": "admin"},
        {"Authorization": "Basic YWRtaW46cGFzc3dvcmQxMjM0"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer null"},
        {"Authorization": "bearer tm_"},
        {"Cookie": "trainmaster_session="},
        {"Cookie": "trainmaster_session=admin; user=admin"},
        {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "eA=="},
    ],
)
def test_no_header_leads_past_the_permission(people: People, headers: dict[str, str]) -> None:
    for path in ("/api/v1/me", "/api/v1/users", "/api/v1/workspaces/vision"):
        assert people.server.request("GET", path, token="", headers=headers).status == 401


def test_the_token_of_a_job_is_for_its_own_run_only(people: People) -> None:
    server = people.server
    other = create_run(server, "vision")
    for route in TABLE:
        if route.open_to_jobs and "{run_id}" in route.path:
            path = fill(route.path.replace("{run_id}", other), people)
            assert people.ask(JOB, route.method, f"{path}?no_such_argument=1").status == 403, route.path
    # What names a run in its arguments is done for the own run.
    answer = people.call(JOB, "secrets.fetch", run_id=other, names=["none"])
    assert people.run_id.encode() in answer.body and other.encode() not in answer.body
    # Nor is it for another workspace, or for a run that does not exist, or for one signed with another key.
    people.tokens["forged"] = people.tokens[JOB].replace(people.run_id, other)
    people.tokens["unknown"] = make_run_token(server, "vision", "none")
    people.tokens["elsewhere's job"] = make_run_token(server, "other", people.run_id)
    for who, workspace in ((JOB, "other"), ("forged", "vision"), ("unknown", "vision"), ("elsewhere's job", "vision")):
        assert people.call(who, "models.list", workspace, query={}).status == 401, who
    assert people.call(JOB, "models.list", query={}).status == 200


def test_the_token_of_a_job_is_dead_when_the_run_has_ended(people: People) -> None:
    run_id = create_run(people.server, "vision")
    people.tokens["short"] = make_run_token(people.server, "vision", run_id)
    assert people.call("short", "models.list", query={}).status == 200
    people.server.call("vision", "runs.finish", run_id=run_id, status="Completed")
    assert people.call("short", "models.list", query={}).status == 401


def test_a_route_without_a_permission_cannot_be_made() -> None:
    async def handler(call) -> None: ...

    with pytest.raises(TypeError):
        Route("GET", "/api/v1/open", handler, summary="Open")  # type: ignore[call-arg]
    for permission in (None, "", "public", True):
        with pytest.raises(TypeError, match="has no permission"):
            Route("GET", "/api/v1/open", handler, permission, "Open")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two routes"):
        Table([*TABLE, Route("GET", "/api/v1/users", handler, Permission.PUBLIC, "Open")])


def test_few_routes_are_public() -> None:
    """Everything else needs a token. Whoever makes another route public has to say so here."""
    assert {f"{route.method} {route.path}" for route in TABLE if route.permission is Permission.PUBLIC} <= {
        "GET /health",
        "GET /ready",
        "GET /metrics",
        "GET /openapi.json",
        "GET /login",
        "POST /login/link",
        "GET /login/openid",
        "GET /login/openid/callback",
        "GET /",
        "GET /w/{rest:path}",
        "GET /assets/{digest}/{name}",
        # A page without data that leads to the studio.
        "GET /mlflow/{workspace}",
        "GET /mlflow/{workspace}/",
    }


def submit_with_priority(people: People, who: str, run_id: str, priority: int) -> Answer:
    job = JobSpec("", "local", command=("true",), environment=EnvironmentSpec(user_managed=True), priority=priority)
    run = {"id": run_id, "experiment": "queued", "status": "NotStarted", "created_at": 1.0, "target": "local"}
    # What a client says about its rights is not believed.
    spec = dump_spec(job)
    return people.call(who, "runs.submit", run={**run, "spec": spec}, may_raise_priority=True)


def test_only_owners_put_a_run_before_others(people: People) -> None:
    refused = submit_with_priority(people, "contributor", "high", 5)
    assert refused.status == 400 and "may not give a run the priority 5" in refused.body.decode()
    for who, run_id, priority in (("contributor", "low", -5), ("owner", "first", 5), ("administrator", "second", 100)):
        answer = submit_with_priority(people, who, run_id, priority)
        assert answer.status == 200, answer
    again = {"run_id": "first", "new_id": "again"}
    assert "may not give" in people.call("contributor", "runs.rerun", **again).body.decode()
    lower = people.call("contributor", "runs.rerun", **again, settings={"priority": "-1"})
    assert lower.status == 200, lower
    answer = people.ask("contributor", "POST", "/api/v1/workspaces/vision/operations/runs.search", {
        "filter": "experiment = queued", "columns": ["id", "priority"], "order": "created", "limit": 10
    })  # fmt: skip
    assert answer.status == 200, answer
    rows = {row["id"]: row["priority"] for row in answer.json()["result"]["rows"]}
    assert rows == {"low": -5, "first": 5, "second": 100, "again": -1}
