"""Values that MLflow's clients log: nothing that was acknowledged is lost, and every reader sees it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.conftest import until
from tests.postgresql import run_server
from tests.server_people import create_run
from tests.server_process import Answer, ServerProcess

pytestmark = pytest.mark.timeout(300)
WORKSPACE = "team"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace(WORKSPACE)
        yield made
    finally:
        made.end()


def post(server: ServerProcess, path: str, **body: Any) -> Answer:
    return server.request("POST", f"/mlflow/{WORKSPACE}/api/2.0/mlflow/{path}", body)


def get(server: ServerProcess, path: str, prefix: str = "api", **query: Any) -> Any:
    answer = server.request("GET", f"/mlflow/{WORKSPACE}/{prefix}/2.0/mlflow/{path}?{urlencode(query, doseq=True)}")
    assert answer.status == 200, answer
    return json.loads(answer.body)


def log(server: ServerProcess, run_id: str, value: Any, step: int = 0, timestamp: int = 1, key: str = "loss") -> None:
    answer = post(server, "runs/log-metric", run_id=run_id, key=key, value=value, timestamp=timestamp, step=step)
    assert (answer.status, answer.body) == (200, b"{}"), answer


def make_run(server: ServerProcess) -> str:
    return create_run(server, WORKSPACE)


def read_values(server: ServerProcess, run_id: str, key: str = "loss") -> list[tuple[int, Any]]:
    found = get(server, "metrics/get-history", run_id=run_id, metric_key=key)
    return [(point["step"], point["value"]) for point in found.get("metrics", [])]


def kill_dispatcher(server: ServerProcess) -> None:
    os.kill(server.call(WORKSPACE, "status")["pid"], signal.SIGKILL)


def test_a_value_is_seen_by_the_next_request_of_everybody(server: ServerProcess) -> None:
    run_id = make_run(server)
    log(server, run_id, 0.5, step=3, timestamp=1234)
    point = {"key": "loss", "value": 0.5, "timestamp": 1234, "step": 3}
    assert get(server, "metrics/get-history", run_id=run_id, metric_key="loss") == {"metrics": [point]}
    log(server, run_id, "NaN", step=4)
    bulk = get(server, "metrics/get-history-bulk", "ajax-api", run_id=[run_id], metric_key="loss")["metrics"]
    assert [each["run_id"] for each in bulk] == [run_id, run_id]
    log(server, run_id, "-Infinity", step=5)
    found = get(server, "metrics/get-history-bulk-interval", run_ids=[run_id], metric_key="loss")["metrics"]
    assert [each["value"] for each in found] == [0.5, "NaN", -1.7976931348623157e308]
    log(server, run_id, 7, step=6)
    (summary,) = server.call(WORKSPACE, "runs.metrics", run_id=run_id)
    assert (summary["last"], summary["count"]) == (7.0, 4)


def test_an_event_says_that_there_are_new_values(server: ServerProcess) -> None:
    run_id = make_run(server)
    version = server.call(WORKSPACE, "workspace.changes")["version"]
    log(server, run_id, 0.5)

    def is_announced() -> bool:
        found = server.call(WORKSPACE, "workspace.changes", since=version)["runs"]
        return any(each["id"] == run_id and "metrics" in each["kinds"] for each in found)

    until(is_announced)


def test_nothing_acknowledged_is_lost_when_the_dispatcher_is_killed(server: ServerProcess) -> None:
    log_to_killed_dispatchers(server)


def test_nothing_acknowledged_is_lost_with_postgresql(tmp_path: Path) -> None:
    with run_server() as database:
        server = ServerProcess(tmp_path / "root", database=database.create_database())
        try:
            server.create_workspace(WORKSPACE)
            log_to_killed_dispatchers(server)
        finally:
            server.end()


def log_to_killed_dispatchers(server: ServerProcess) -> None:
    running, ended = make_run(server), make_run(server)
    server.call(WORKSPACE, "runs.finish", run_id=ended, status="Completed")
    for step in range(30):
        for run_id in (running, ended):
            log(server, run_id, step / 2, step)
        if step % 10 == 9:
            kill_dispatcher(server)
    wanted = [(step, step / 2) for step in range(30)]
    assert read_values(server, running) == read_values(server, ended) == wanted
    # Those that nobody asks for are read as well.
    log(server, ended, 99.0, 99)
    kill_dispatcher(server)
    until(lambda: find_by_last_value(server, 99.0) == [ended])


def find_by_last_value(server: ServerProcess, value: float) -> list[str]:
    page = server.call(WORKSPACE, "runs.search", filter=f"metrics.loss = {value}", columns=["id"])
    return [row["id"] for row in page["rows"]]


def test_a_batch_is_logged_as_a_whole(server: ServerProcess) -> None:
    run_id = make_run(server)
    metrics = [{"key": "acc", "value": step, "timestamp": step, "step": step} for step in range(1000)]
    assert post(server, "runs/log-batch", run_id=run_id, metrics=metrics).status == 200
    assert len(read_values(server, run_id, "acc")) == 1000
    pages, token = [], ""
    while True:
        query = {"page_token": token} if token else {}
        page = get(server, "metrics/get-history", run_id=run_id, metric_key="acc", max_results=400, **query)
        pages.append([point["step"] for point in page["metrics"]])
        token = page.get("next_page_token", "")
        if not token:
            break
    assert [len(page) for page in pages] == [400, 400, 200]
    assert [step for page in pages for step in page] == list(range(1000))
    bad = [*metrics[:5], {"key": "other", "timestamp": 1}]
    answer = post(server, "runs/log-batch", run_id=run_id, metrics=bad)
    assert answer.status == 400
    assert "Missing value for required parameter 'metrics[5].value'" in json.loads(answer.body)["message"]
    assert len(read_values(server, run_id, "acc")) == 1000
    answer = post(server, "runs/log-batch", run_id=run_id, metrics=[*metrics, *metrics])
    assert "at most 1000 metrics. Got 2000 metrics" in json.loads(answer.body)["message"]


BAD = [
    ({"run_id": 31}, "Invalid value 31 for parameter 'run_id' supplied"),
    ({"run_id": None}, "Missing value for required parameter 'run_id'"),
    ({"key": 31}, "Invalid value 31 for parameter 'key' supplied"),
    ({"key": ""}, "Missing value for required parameter 'key'"),
    ({"value": "foo"}, "Invalid value \"foo\" for parameter 'value' supplied"),
    ({"value": None}, "Missing value for required parameter 'value'"),
    ({"timestamp": "foo"}, "Invalid value \"foo\" for parameter 'timestamp' supplied"),
    ({"timestamp": -1}, "Timestamp must be a nonnegative long"),
    ({"step": "foo"}, "Invalid value \"foo\" for parameter 'step' supplied"),
    ({"step": 2**63}, "for parameter 'step' supplied"),
    ({"key": "a?b"}, "Names may only contain alphanumerics"),
    ({"key": "a/../b"}, "This name would resolve to 'b'"),
    ({"key": "x" * 251}, "'Metric name' exceeds the maximum length of 250 characters"),
]


def test_wrong_values_are_refused_as_by_mlflow(server: ServerProcess) -> None:
    run_id = make_run(server)
    good = {"run_id": run_id, "key": "loss", "value": 1, "timestamp": 1, "step": 1}
    for change, message in BAD:
        answer = post(server, "runs/log-metric", **{**good, **change})
        assert answer.status == 400, (change, answer)
        assert message in json.loads(answer.body)["message"], (change, answer)
    answer = post(server, "runs/log-metric", **{**good, "run_id": "0" * 32})
    assert json.loads(answer.body) == {
        "error_code": "RESOURCE_DOES_NOT_EXIST",
        "message": f"Run with id={'0' * 32} not found",
        "sqlstate": "KAM00",
        "error_class": "RESOURCE_NOT_FOUND",
    }
    assert read_values(server, run_id) == []


def test_bodies_are_read_whatever_their_form_and_add_nothing_to_the_request(server: ServerProcess) -> None:
    """The server passes a body on as it came, within the line of its own request."""
    run_id = make_run(server)
    path = f"/mlflow/{WORKSPACE}/api/2.0/mlflow/runs/log-metric"
    headers = {"Content-Type": "application/json"}
    point = {"run_id": run_id, "key": "loss", "timestamp": 1}
    plain = json.dumps({**point, "value": 1.5, "step": 1}).encode()
    for number, body in enumerate(
        (
            plain,
            json.dumps({**point, "value": 1.5, "step": 2}, indent=1).encode(),
            json.dumps({**point, "value": float("nan"), "step": 3}).encode(),
            json.dumps(json.dumps({**point, "value": 1.5, "step": 4})).encode(),
            json.dumps({**point, "value": 1.5, "step": 5}).encode("utf-16"),
        ),
        start=1,
    ):
        answer = server.request("POST", path, body, headers=headers)
        assert (answer.status, answer.body) == (200, b"{}"), answer
        assert [step for step, _ in read_values(server, run_id)] == list(range(1, number + 1))
    for body in (
        plain + b',"user":"other"',
        plain + b'},"op":"status"}',
        plain[:-1],
        b"[" + plain + b"]",
        plain + b"\n" + plain,
    ):
        answer = server.request("POST", path, body, headers=headers)
        assert answer.status == 400, (body, answer)
    assert len(read_values(server, run_id)) == 5


def test_the_audit_log_says_who_logged_into_which_run(server: ServerProcess) -> None:
    run_id = make_run(server)
    for step in range(5):
        log(server, run_id, 1.0, step)

    entries = server.request("GET", f"/api/v1/workspaces/{WORKSPACE}/audit?limit=100").json()["entries"]
    found = [each for each in entries if each["target"].endswith(f"runs/log-metric {run_id}")]
    # A new hour may have begun.
    assert sum(each["count"] for each in found) == 5 and len(found) <= 2
    assert {(each["caller"], each["status"]) for each in found} == {("admin", 200)}


def create(server: ServerProcess) -> str:
    made = json.loads(post(server, "runs/create", experiment_id="0").body)
    return str(made["run"]["info"]["run_id"])


def read_data(server: ServerProcess, run_id: str) -> dict[str, dict[str, Any]]:
    data = get(server, "runs/get", run_id=run_id)["run"]["data"]
    return {name: {each["key"]: each["value"] for each in found} for name, found in data.items()}


def test_a_batch_with_a_changed_parameter_changes_nothing(server: ServerProcess) -> None:
    run_id = create(server)
    log(server, run_id, 1.0, step=3)
    metrics = [{"key": "loss", "value": 2.0, "timestamp": 1, "step": 5}]
    first = {"metrics": metrics, "params": [{"key": "lr", "value": "1"}], "tags": [{"key": "kind", "value": "a"}]}
    assert post(server, "runs/log-batch", run_id=run_id, **first).status == 200
    before = read_data(server, run_id)
    assert before["metrics"] == {"loss": 2.0} and before["params"] == {"lr": "1"} and before["tags"]["kind"] == "a"
    second = {
        "metrics": [{"key": "other", "value": 2.0, "timestamp": 1}],
        "params": [{"key": "depth", "value": "3"}, {"key": "lr", "value": "2"}],
        "tags": [{"key": "kind", "value": "b"}],
    }
    answer = post(server, "runs/log-batch", run_id=run_id, **second)
    assert answer.status == 400
    wanted = "Params were already logged='[{'key': 'lr', 'old_value': '1', 'new_value': '2'}]'"
    assert wanted in json.loads(answer.body)["message"]
    second = {"metrics": [{**metrics[0], "key": "other", "model_id": "m-none"}], "tags": second["tags"]}
    answer = post(server, "runs/log-batch", run_id=run_id, **second)
    assert answer.status == 400 and "Logged model with ID 'm-none' not found" in json.loads(answer.body)["message"]
    assert read_data(server, run_id) == before


def test_values_of_ended_and_deleted_runs(server: ServerProcess) -> None:
    run_id = create(server)
    assert post(server, "runs/update", run_id=run_id, status="FINISHED").status == 200
    log(server, run_id, 0.5)
    assert read_data(server, run_id)["metrics"] == {"loss": 0.5}
    assert post(server, "runs/delete", run_id=run_id).status == 200
    answer = post(server, "runs/log-metric", run_id=run_id, key="loss", value=1, timestamp=1)
    assert (answer.status, json.loads(answer.body)["message"]) == (
        400,
        f"The run {run_id} must be in the 'active' state. Current state is deleted.",
    )
    assert read_values(server, run_id) == [(0, 0.5)]


def test_values_of_a_logged_model(server: ServerProcess) -> None:
    run_id = create(server)
    made = json.loads(post(server, "logged-models", experiment_id="0", name="net").body)["model"]["info"]
    point = {"key": "loss", "value": 0.5, "timestamp": 7, "step": 2, "model_id": made["model_id"]}
    assert post(server, "runs/log-metric", run_id=run_id, **point, dataset_name="d", dataset_digest="x").status == 200
    found = get(server, f"logged-models/{made['model_id']}")["model"]["data"]["metrics"]
    assert [(each["value"], each["dataset_name"], each["run_id"]) for each in found] == [(0.5, "d", run_id)]
    assert read_values(server, run_id) == [(2, 0.5)]
