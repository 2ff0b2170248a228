"""MLflow's API over the dispatcher's socket, without a client of MLflow."""

from __future__ import annotations

import json
from typing import Any

from trainmaster import Workspace


def send(workspace: Workspace, method: str, path: str, **arguments: Any) -> tuple[int, Any]:
    """The status and the body of the answer to a request below `/api/2.0/mlflow/`."""
    answer = workspace.connection.call("mlflow.call", method=method, path=f"2.0/mlflow/{path}", arguments=arguments)
    return answer["status"], json.loads(answer["body"])


def post(workspace: Workspace, path: str, **arguments: Any) -> Any:
    """The body of the answer to a POST that succeeds."""
    status, body = send(workspace, "POST", path, **arguments)
    assert status == 200, body
    return body


def refuse(workspace: Workspace, code: str, path: str, **arguments: Any) -> str:
    """The message with which a POST is refused."""
    status, body = send(workspace, "POST", path, **arguments)
    assert status >= 400 and body["error_code"] == code, body
    return str(body["message"])


def get_run(workspace: Workspace, run_id: str) -> Any:
    """A run as MLflow's clients see it."""
    status, body = send(workspace, "GET", "runs/get", run_id=run_id)
    assert status == 200, body
    return body["run"]


def start_run(workspace: Workspace, experiment: str = "", **arguments: Any) -> str:
    """Create a run, in the experiment 0 unless another one is named, and return its id."""
    experiment_id = "0"
    if experiment:
        status, body = send(workspace, "GET", "experiments/get-by-name", experiment_name=experiment)
        if status == 200:
            experiment_id = body["experiment"]["experiment_id"]
        else:
            experiment_id = post(workspace, "experiments/create", name=experiment)["experiment_id"]
    return str(post(workspace, "runs/create", experiment_id=experiment_id, **arguments)["run"]["info"]["run_id"])
