"""Runs of MLflow's prompt engineering page: one prompt, the answer of a language model, and both as a table.

The page has asked the model already. The run also gets the prompt as a model of MLflow, which sends it again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainmaster.dispatcher.mlflow.checks import check_param
from trainmaster.dispatcher.mlflow.clock import read_clock
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.dispatcher.mlflow.requests import Request, wrong_value
from trainmaster.dispatcher.mlflow.runs import RunEndpoints
from trainmaster.shared.folders import WorkspaceFolder

_TABLE, _MODEL = "eval_results_table.json", "model"
_TAGS: Mapping[str, str] = MappingProxyType(
    {
        "mlflow.loggedArtifacts": json.dumps([{"path": _TABLE, "type": "table"}]),
        "mlflow.runSourceType": "PROMPT_ENGINEERING",
    }
)
_REQUIRED = ("experiment_id", "prompt_template", "prompt_parameters", "model_route", "model_input", "mlflow_version")


@dataclass(frozen=True)
class Prompt:
    """What the page has sent to a language model, and what it answered."""

    template: str
    inputs: Mapping[str, str]
    """The values in the template."""
    route: str
    settings: Mapping[str, str]
    """Of the model, as its temperature."""
    text: str
    """The template with its values."""
    answer: str | None
    facts: Mapping[str, str]
    """Of the answer, as how long it took."""
    release: str
    """The release of MLflow."""


class PromptRunEndpoints:
    """Creates such runs."""

    def __init__(self, folder: WorkspaceFolder, runs: RunEndpoints) -> None:
        self._folder = folder
        self._runs = runs

    @endpoint("POST", "runs/create-promptlab-run", only_for_pages=True)
    def create(self, request: Request) -> str:
        """Create a run that has ended, with its files."""
        prompt = read_prompt(request)
        now = round(read_clock() * 1000)
        start_ms = request.integer("start_time", now)
        asked = {name: request.arguments.get(name) for name in ("experiment_id", "run_name", "user_id", "tags")}
        made = self._runs.create(Request({**asked, "start_time": start_ms}, request.user))
        run_id = json.loads(made)["run"]["info"]["run_id"]
        model = describe_model(run_id, uuid.uuid4().hex, now, prompt)
        _write_files(self._folder.run(run_id).files, prompt, model)
        params = {**prompt.settings, "model_route": prompt.route, "prompt_template": prompt.template}
        self._runs.log_all(run_id, params, _TAGS)
        self._runs.log_model(Request({"run_id": run_id, "model_json": json.dumps({**model, "flavors": {}})}))
        self._runs.update(Request({"run_id": run_id, "status": "FINISHED", "end_time": now}))
        return self._runs.get(Request({"run_id": run_id}))


def read_prompt(request: Request) -> Prompt:
    """The prompt in a request. Raises MlflowError."""
    for name in _REQUIRED:
        if not request.arguments.get(name):
            raise MlflowError(WRONG, f"CreatePromptlabRun request must specify {name}.")
    settings = _read_values(request, "model_parameters")
    route, template = request.text("model_route"), request.text("prompt_template")
    for key, value in {**settings, "prompt_template": template}.items():
        check_param(key, value)
    return Prompt(
        template=template,
        inputs=_read_values(request, "prompt_parameters"),
        route=route,
        settings=settings,
        text=request.text("model_input"),
        answer=request.text("model_output") if request.has("model_output") else None,
        facts=_read_values(request, "model_output_parameters"),
        release=request.text("mlflow_version"),
    )


def _read_values(request: Request, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for index, entry in enumerate(request.objects(name)):
        key = entry.get("key")
        if not isinstance(key, str) or not key:
            raise wrong_value(f"{name}[{index}].key", key)
        found[key] = str(entry.get("value"))
    return found


def describe_model(run_id: str, model_uuid: str, now_ms: int, prompt: Prompt) -> dict[str, Any]:
    """The file `MLmodel` of the prompt."""
    made_at = datetime.fromtimestamp(now_ms / 1000.0, UTC)
    inputs = [{"type": "string", "name": name, "required": True} for name in prompt.inputs]
    outputs = [{"type": "string", "name": "output", "required": True}]
    flavor = {"loader_module": "mlflow.prompt.promptlab_model", "parameters_path": "parameters.yaml"}
    return {
        "artifact_path": _MODEL,
        "flavors": {"python_function": flavor},
        "mlflow_version": prompt.release,
        "model_uuid": model_uuid,
        "run_id": run_id,
        "signature": {"inputs": json.dumps(inputs), "outputs": json.dumps(outputs), "params": None},
        "utc_time_created": made_at.strftime("%Y-%m-%d %H:%M:%S.%f"),
    }


def make_table(prompt: Prompt) -> dict[str, Any]:
    """The prompt and its answer as a table with one row, which MLflow's pages show."""
    row = {**prompt.inputs, "prompt": prompt.text, "output": prompt.answer, **prompt.facts}
    return {"columns": list(row), "data": [list(row.values())]}


def _write_files(folder: Path, prompt: Prompt, model: Mapping[str, Any]) -> None:
    parameters = {
        "model_parameters": prompt.settings,
        "model_route": prompt.route,
        "prompt_parameters": prompt.inputs,
        "prompt_template": prompt.template,
    }
    (folder / _TABLE).write_text(json.dumps(make_table(prompt)))
    inside = folder / _MODEL
    inside.mkdir()
    # JSON is YAML, too.
    (inside / "MLmodel").write_text(json.dumps(model, indent=2))
    (inside / "parameters.yaml").write_text(json.dumps(parameters, indent=2))
    (inside / "requirements.txt").write_text("mlflow[gateway]\n")
