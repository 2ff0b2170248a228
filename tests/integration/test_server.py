"""`trainmaster server` as its users meet it: a real process, requests over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server_process import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    process.create_workspace("vision")
    yield process
    process.end()


def test_an_operation_answers_as_on_the_socket(server: ServerProcess) -> None:
    assert server.call("vision", "runs.list", query={}) == []
    assert server.call("vision", "experiments.ensure", name="first")["name"] == "first"


def test_a_wrong_argument_gets_headline_cause_and_request_id(server: ServerProcess) -> None:
    path = "/api/v1/workspaces/vision/operations/runs.list"
    answer = server.request("POST", path, {"query": {"colour": 1}}, headers={"X-Request-Id": "my-request-1"})
    assert answer.status == 400
    error = answer.json()["error"]
    assert error["headline"] == "runs.list: the request cannot be used"
    assert "colour" in error["cause"]
    assert error["request_id"] == answer.headers["x-request-id"] == "my-request-1"


def test_what_does_not_exist_is_404(server: ServerProcess) -> None:
    operations = "/api/v1/workspaces/vision/operations"
    for path in ("/api/v1/nothing", f"{operations}/no.such"):
        assert server.request("POST", path, {}).status == 404
    # There is such an operation, but not over HTTP.
    answer = server.request("POST", f"{operations}/agent.notify", {})
    assert answer.status == 403 and "use the socket" in answer.json()["error"]["cause"]
    assert server.request("GET", "/api/v1/workspaces/other").status == 404
    answer = server.request("POST", "/api/v1/workspaces/vision/operations/runs.get", {"run_id": "none"})
    assert (answer.status, answer.json()["error"]["type"]) == (404, "RunNotFoundException")


def test_another_method_is_405_and_says_which_are_possible(server: ServerProcess) -> None:
    answer = server.request("PUT", "/api/v1/workspaces", {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def test_nobody_gets_401(server: ServerProcess) -> None:
    assert server.request("GET", "/api/v1/workspaces", token="").status == 401
    assert server.request("GET", "/api/v1/workspaces", token="tm_wrong").status == 401
