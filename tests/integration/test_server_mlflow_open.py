"""A server that needs no sign-in for MLflow's API: scripts and tests use the bare address, without a token."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mlflow_releases import run_client
from tests.server_process import TRAINMASTER, ServerProcess

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root", "--mlflow-open")
    try:
        made.create_workspace("default")
        yield made
    finally:
        made.end()


def test_a_client_with_the_bare_address(server: ServerProcess) -> None:
    script = f"""
import mlflow
client = mlflow.MlflowClient({server.url!r})
run = client.create_run(client.create_experiment("bare"))
client.log_text(run.info.run_id, "hello", "notes/a.txt")
print(run.info.user_id, [each.path for each in client.list_artifacts(run.info.run_id, "notes")])
"""
    assert run_client(script, server.url).splitlines()[-1] == "unknown ['notes/a.txt']"


def test_programs_send_what_they_like_to_the_address(server: ServerProcess) -> None:
    create = "/api/2.0/mlflow/experiments/create"
    made = server.request("POST", create, {"name": "by hand"}, token="")
    assert made.status == 200, made
    assert server.request("PUT", "/api/2.0/mlflow-artifacts/artifacts/free.txt", b"1", token="").status == 200
    assert server.request("DELETE", "/api/2.0/mlflow-artifacts/artifacts/free.txt", token="").status == 200
    # An address that ends with a slash, to which a path was added.
    for path in ("//get-artifact", "/mlflow/default//get-artifact"):
        answer = server.request("GET", f"{path}?run_id=1&path=../x", token="")
        assert (answer.status, answer.json()["message"]) == (400, "Invalid path")
    query = {"query": f'{{ mlflowGetExperiment(input: {{experimentId: "{made.json()["experiment_id"]}"}}) {{'}
    query["query"] += " experiment { name } } }"
    answer = server.request("POST", "/graphql", query, token="")
    assert answer.json() == {"data": {"mlflowGetExperiment": {"experiment": {"name": "by hand"}}}, "errors": None}


def test_a_fresh_store_is_a_new_workspace(server: ServerProcess) -> None:
    for name in ("one", "two"):
        server.create_workspace(name)
        found = server.request("POST", f"/mlflow/{name}/api/2.0/mlflow/experiments/create", {"name": "x"}, token="")
        assert found.json() == {"experiment_id": "1"}
    # The bare address is that of the workspace that MLflow calls so.
    assert server.request("GET", "/api/2.0/mlflow/experiments/get?experiment_id=0", token="").status == 200


def test_nothing_else_is_open(server: ServerProcess) -> None:
    assert server.request("GET", "/api/v1/workspaces", token="").status == 401
    assert server.request("POST", "/api/v1/workspaces", {"name": "mine"}, token="").status == 401
    create = "/mlflow/default/api/2.0/mlflow/experiments/create"
    assert server.request("POST", create, {"name": "no"}, token="tm_wrong").status == 401
    # A page of another site can send a text to this machine without a question.
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        answer = server.request("POST", create, b'{"name": "forged"}', token="", headers=headers)
        assert answer.status == 403, headers
    assert server.request("GET", "/mlflow/default/version", token="", headers={"Host": "evil.example"}).status == 421


def test_only_where_nobody_else_reaches_it(server: ServerProcess, tmp_path: Path) -> None:
    subprocess.run([TRAINMASTER, "server", "init", "--root", str(tmp_path / "root")], check=True, capture_output=True)
    words = [TRAINMASTER, "server", "run", "--root", str(tmp_path / "root"), "--host", "0.0.0.0", "--insecure"]
    refused = subprocess.run([*words, "--mlflow-open"], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "needs a sign-in on a server that other machines reach" in refused.stderr
