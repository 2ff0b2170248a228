"""The nouns of a workspace over REST."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server_process import Answer, ServerProcess

from trainmaster import Experiment, Workspace

BASE = "/api/v1/workspaces/vision"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    process.create_workspace("vision")
    yield process
    process.end()


def ask(server: ServerProcess, method: str, path: str, body: Any = None) -> Any:
    answer = server.request(method, BASE + path, body)
    assert answer.status == 200, answer
    return answer.json()


def refuse(server: ServerProcess, method: str, path: str, body: Any = None) -> Answer:
    answer = server.request(method, BASE + path, body)
    assert 400 <= answer.status < 500, answer
    return answer


def start_run(server: ServerProcess, experiment: str) -> str:
    ask(server, "POST", "/experiments", {"name": experiment})
    run = {"id": f"run-{uuid.uuid4().hex}", "experiment": experiment, "status": "Running", "created_at": time.time()}
    (created,) = server.call("vision", "runs.create", runs=[{**run, "submitted_by": "somebody else"}])
    # What a client says about itself is not believed.
    assert created["submitted_by"] == "admin"
    return str(run["id"])


def test_experiments(server: ServerProcess) -> None:
    assert ask(server, "POST", "/experiments", {"name": "mnist"})["name"] == "mnist"
    assert ask(server, "GET", "/experiments/mnist")["tags"] == {}
    assert ask(server, "PATCH", "/experiments/mnist", {"tags": {"team": "a"}})["tags"] == {"team": "a"}
    assert "mnist" in [each["name"] for each in ask(server, "GET", "/experiments?tags=team%3Da")["experiments"]]
    assert ask(server, "GET", "/experiments?tags=team%3Db")["experiments"] == []
    ask(server, "DELETE", "/experiments/mnist")
    assert refuse(server, "GET", "/experiments/mnist").status == 404


def test_runs(server: ServerProcess) -> None:
    run_id = start_run(server, "first")
    assert ask(server, "GET", f"/runs/{run_id}")["status"] == "Running"
    ask(server, "PATCH", f"/runs/{run_id}", {"display_name": "mine"})
    ask(server, "PATCH", f"/runs/{run_id}/tags", {"tags": {"kind": "good", "more": "1"}})
    ask(server, "DELETE", f"/runs/{run_id}/tags?names=more")
    found = ask(server, "GET", "/runs?filter=tags.kind%3D%22good%22&columns=id&columns=name&columns=tags.kind")
    assert found["rows"] == [{"id": run_id, "name": "mine", "tags.kind": "good"}]
    assert run_id in [entry["run_id"] for entry in ask(server, "GET", "/queue")["queue"]]
    assert ask(server, "GET", f"/runs/{run_id}/children") == {"runs": [], "next": None}
    assert ask(server, "POST", f"/runs/{run_id}/cancel")["status"] == "Canceled"
    assert ask(server, "DELETE", f"/runs/{run_id}")["run_ids"] == [run_id]
    assert refuse(server, "GET", f"/runs/{run_id}").status == 404


def test_metrics_are_json_even_if_they_are_not_numbers(server: ServerProcess) -> None:
    workspace = Workspace(path=server.root / "workspaces" / "vision")
    run = Experiment(workspace, "first").start_logging(snapshot_directory=None)
    for value in (0.5, math.nan, math.inf):
        run.log("loss", value)
    run.complete()

    def refuse_constant(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    answer = server.request("GET", f"{BASE}/runs/{run.id}/metrics?name=loss")
    (series,) = json.loads(answer.body, parse_constant=refuse_constant)["metrics"]
    assert series["values"] == [0.5, "NaN", "Infinity"]
    # The SDK gets what it gets at home.
    (same,) = server.call("vision", "runs.series", run_id=run.id, name="loss")
    assert math.isnan(same["values"][1])
    assert len(ask(server, "GET", f"/runs/{run.id}/metrics?name=loss&max_points=2")["metrics"][0]["values"]) == 2


def test_targets(server: ServerProcess) -> None:
    size = {"engine": "local", "nodes": 2, "cpus_per_node": 1, "gpus_per_node": 0}
    assert ask(server, "PUT", "/targets/small", size)["nodes"] == 2
    assert "small" in [each["name"] for each in ask(server, "GET", "/targets")["targets"]]
    assert ask(server, "GET", "/targets/small")["engine"] == "local"
    assert refuse(server, "PUT", "/targets/small", {**size, "nodes": "two"}).json()["error"]["cause"]
    ask(server, "DELETE", "/targets/small")
    assert refuse(server, "GET", "/targets/small").status == 404


def test_secrets_are_write_only(server: ServerProcess) -> None:
    ask(server, "PUT", "/secrets/password", {"value": "hunter22"})
    listed = server.request("GET", f"{BASE}/secrets")
    assert listed.json() == {"secrets": ["password"]}
    assert b"hunter22" not in listed.body
    assert refuse(server, "GET", "/secrets/password").status == 405
    assert refuse(server, "POST", "/operations/secrets.get", {"names": ["password"]}).status == 403
    assert refuse(server, "POST", "/operations/secrets.fetch", {"run_id": "x", "names": ["password"]}).status == 403
    ask(server, "DELETE", "/secrets/password")
    assert ask(server, "GET", "/secrets") == {"secrets": []}


def test_keys_of_datastores_do_not_leave_the_server(server: ServerProcess) -> None:
    options = {"account_name": "me", "connection_string": "AccountKey=hunter22"}
    body = {"url": "az://container", "options": options}
    paths = ("/datastores/cloud", "/datastores")
    answers = [server.request("PUT", f"{BASE}/datastores/cloud", body)]
    answers += [server.request("GET", BASE + path) for path in paths]
    for operation, arguments in (("datastores.get", {"name": "cloud"}), ("datastores.list", {})):
        answers.append(server.request("POST", f"{BASE}/operations/{operation}", arguments))
    for answer in answers:
        assert answer.status == 200, answer
        assert b"hunter22" not in answer.body
        assert b'"account_name":"me"' in answer.body
    ask(server, "DELETE", "/datastores/cloud")
    assert refuse(server, "GET", "/datastores/cloud").status == 404


def test_what_does_not_exist_is_not_found(server: ServerProcess) -> None:
    for path in ("datasets", "datastores", "environments", "experiments", "models", "services", "sweeps", "targets"):
        answer = refuse(server, "GET", f"/{path}/nothing")
        assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found"), answer


def test_wrong_arguments_name_the_right_ones(server: ServerProcess) -> None:
    error = refuse(server, "GET", "/sweeps?colour=red").json()["error"]
    assert error["headline"] == "there is no argument 'colour'"
    assert "experiment" in error["hint"]
    assert refuse(server, "GET", "/sweeps?limit=many").json()["error"]["cause"] == "It must be a whole number."
    assert refuse(server, "POST", "/experiments", {}).json()["error"]["headline"] == "the argument 'name' is missing"
    assert refuse(server, "POST", "/experiments", [1]).status == 400
    text = server.request("POST", f"{BASE}/experiments", b"{}", headers={"Content-Type": "text/plain"})
    assert text.status == 415


def test_many_runs_are_archived_restored_and_deleted(server: ServerProcess) -> None:
    ids = [start_run(server, "pile") for _ in range(3)]
    active = start_run(server, "pile")
    for run_id in ids:
        ask(server, "POST", f"/runs/{run_id}/cancel")

    def found(more: str = "") -> set[str]:
        rows = ask(server, "GET", f"/runs?filter=experiment%3Dpile&columns=id{more}")["rows"]
        return {row["id"] for row in rows}

    assert refuse(server, "POST", "/archived-runs", {"run_ids": [ids[0], active]}).status == 400
    assert set(ask(server, "POST", "/archived-runs", {"run_ids": ids})["run_ids"]) == set(ids)
    assert found() == {active} and found("&archived=true") == {active, *ids}
    assert ask(server, "GET", f"/runs/{ids[0]}")["archived_at"] > 0
    assert ask(server, "POST", "/restored-runs", {"run_ids": ids[:1]}) == {"run_ids": ids[:1]}
    assert found() == {active, ids[0]}
    assert refuse(server, "POST", "/restored-runs", {"run_ids": ["nothing"]}).status == 404
    assert set(ask(server, "POST", "/deleted-runs", {"run_ids": ids})["run_ids"]) == set(ids)
    assert found("&archived=true") == {active}
    assert refuse(server, "POST", "/deleted-runs", {"run_ids": [active] * 1001}).status == 400


def test_charts_of_several_runs_and_the_names_there_are(server: ServerProcess) -> None:
    workspace = Workspace(path=server.root / "workspaces" / "vision")
    runs = [Experiment(workspace, "charted").start_logging(snapshot_directory=None) for _ in range(2)]
    for number, run in enumerate(runs):
        for step in range(5):
            run.log("charted", number + step, step=step)
        run.log("only once", 1.0)
        run.tag("charted-by", str(number))
    ids = [run.id for run in runs]
    # Values that are not in the store yet are read first.
    curves = ask(server, "POST", "/curves", {"run_ids": ids, "names": ["charted"]})["curves"]
    assert [(curve["run_id"], curve["values"]) for curve in curves] == [
        (ids[0], [0, 1, 2, 3, 4]),
        (ids[1], [1, 2, 3, 4, 5]),
    ]
    since = {ids[0]: {"charted": 5}, ids[1]: {"charted": 4}}
    newer = ask(server, "POST", "/curves", {"run_ids": ids, "names": ["charted"], "since": since})["curves"]
    assert [curve["values"] for curve in newer] == [[], [5]]
    lines = ask(server, "POST", "/sparklines", {"run_ids": ids, "names": ["charted"], "points": 2})["sparklines"]
    assert [line["values"] for line in lines] == [[0, 4], [1, 5]]
    outlines = ask(server, "POST", "/run-outlines", {"run_ids": [*ids, "nothing"]})["runs"]
    assert [each["run"]["id"] for each in outlines] == ids
    assert [[metric["last"] for metric in each["metrics"]] for each in outlines] == [[4, 1], [5, 1]]
    fields = ask(server, "GET", "/run-fields?prefix=charted")
    assert fields["metrics"] == ["charted"] and fields["tags"] == ["charted-by"] and fields["is_all"]
    assert ask(server, "GET", "/run-fields/values?field=tag.charted-by") == {"values": ["0", "1"]}
    differing = ask(server, "POST", "/run-fields/differing", {"run_ids": ids})
    assert differing["tags"] == ["charted-by"] and differing["metrics"] == ["charted"]
    for run in runs:
        run.complete()
    wrong = {"run_ids": ids, "names": ["charted"]}
    assert refuse(server, "POST", "/curves", {**wrong, "max_points": 1}).status == 400
    assert refuse(server, "POST", "/curves", {"run_ids": [str(n) for n in range(501)]}).status == 400
    assert refuse(server, "GET", "/run-fields/values?field=staus").status == 400
