"""Every path of a real MLflow server is answered: by what it is for, or with 501 and a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from tests.mlflow_releases import run_client
from tests.server_people import add_user, grant
from tests.server_process import ServerProcess

pytestmark = pytest.mark.timeout(600)

_LIST = """
import json
from mlflow.server import app
print(json.dumps([(method, rule.rule) for rule in app.url_map.iter_rules() for method in rule.methods]))
"""
# MLflow's server has no answer at this one itself: a slash is missing in it.
_MISTAKES = ("/api/2.0mlflow/", "/ajax-api/2.0mlflow/")
# Pages, which are served with --mlflow-ui.
_PAGES = ("/", "/build/<path:filename>", "/static-files/<path:path>")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


def test_no_path_of_mlflow_is_unknown(server: ServerProcess) -> None:
    known = json.loads(run_client(_LIST, "").splitlines()[-1])
    assert len(known) > 300
    unknown = []
    for method, rule in known:
        if method in ("OPTIONS", "HEAD") or rule in _PAGES or rule.startswith(_MISTAKES):
            continue
        path = re.sub(r"<[^>]*>", "x", rule)
        body = None if method == "GET" else {}
        answer = server.request(method, f"/mlflow/team{path}", body)
        if answer.status == 405 or b"ENDPOINT_NOT_FOUND" in answer.body or answer.status == 500:
            unknown.append((method, rule, answer.status))
        assert answer.status != 501 or len(answer.json()["message"]) > 40
    assert not unknown, str(unknown)


def test_parts_that_are_missing_say_so(server: ServerProcess) -> None:
    for method, path in (
        ("POST", "/api/3.0/mlflow/traces/search"),
        ("GET", "/ajax-api/2.0/mlflow/traces/tr-1/info"),
        ("POST", "/api/2.0/mlflow/webhooks"),
        ("GET", "/api/3.0/mlflow/scorers/list"),
        ("POST", "/v1/traces"),
        ("POST", "/gateway/mlflow/v1/chat/completions"),
        ("GET", "/ajax-api/3.0/jobs/1"),
    ):
        answer = server.request(method, f"/mlflow/team{path}")
        assert (answer.status, answer.json()["error_code"]) == (501, "NOT_IMPLEMENTED"), path
        assert "not implemented by this server" in answer.json()["message"]
        # The same at the root of the server, which has one workspace.
        assert server.request(method, path).status == 501, path
    absent = server.request("GET", "/mlflow/team/api/2.0/mlflow/no-such-path")
    assert (absent.status, absent.json()["error_code"]) == (404, "ENDPOINT_NOT_FOUND")


def test_the_server_says_what_it_can(server: ServerProcess) -> None:
    assert server.request("GET", "/health", token="").status == 200
    assert server.request("GET", "/mlflow/team/health").body == b"OK"
    assert server.request("GET", "/version").body == server.request("GET", "/mlflow/team/version").body == b"3.17.2"
    found = server.request("GET", "/mlflow/team/api/3.0/mlflow/server-info").json()
    assert found["multipart_uploads_enabled"] is found["workspaces_enabled"] is False


def test_a_workspace_is_chosen_by_address_or_header(server: ServerProcess) -> None:
    server.create_workspace("second")
    token = add_user(server, "ann")
    grant(server, "second", "ann", "contributor")
    script = """
import mlflow
mlflow.set_workspace("second")
assert [each.name for each in mlflow.list_workspaces()] == ["second"]
mlflow.create_experiment("by header")
print(mlflow.get_experiment_by_name("by header").name)
mlflow.set_workspace("team")
try:
    mlflow.create_experiment("not mine")
except mlflow.MlflowException as error:
    print(error.error_code)
"""
    assert run_client(script, server.url, token).splitlines() == ["by header", "PERMISSION_DENIED"]
    names = [each["name"] for each in server.call("second", "experiments.list")]
    assert "by header" in names
    # Without a choice there is no guess.
    answer = server.request("GET", "/api/2.0/mlflow/experiments/get-by-name?experiment_name=x", token=token)
    assert answer.status == 400 and "several workspaces" in answer.json()["message"]
    # A header that is a path leads nowhere.
    for name in ("team/../second", "..", "second/api", "%2e%2e"):
        path = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=x"
        answer = server.request("GET", path, token=token, headers={"X-MLFLOW-WORKSPACE": name})
        assert answer.status in (400, 403, 404), (name, answer)
