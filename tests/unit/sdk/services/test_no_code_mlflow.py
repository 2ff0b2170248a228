"""Models in MLflow's format: what their files say, and how requests are read."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trainmaster.environments import pythons
from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.services import no_code
from trainmaster.sdk.services.no_code.kinds import Kind, Recognised, recognise
from trainmaster.sdk.services.no_code.mlflow_files import check_flavour, find_folder, make_environment

SCRIPTS = Path(no_code.__file__).parents[3] / "scoring" / "no_code"


def script(name: str) -> Any:
    """One of the scripts as a service imports it."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tensors = script("no_code_tensors")
scoring = script("mlflow_model")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "MLmodel").write_text("flavors:\n  python_function:\n    loader_module: mlflow.sklearn\n")
    (tmp_path / "requirements.txt").write_text("mlflow==3.17.2\n--extra-index-url http://elsewhere\nnumpy # x\n")
    (tmp_path / "python_env.yaml").write_text(f"python: {pythons.running_version()}.1\n")
    return tmp_path


def test_the_description_at_the_top_decides():
    assert find_folder(["m/MLmodel", "m/artifacts/inner/MLmodel"]) == "m"
    assert find_folder(["a/MLmodel", "b/MLmodel"]) is None and find_folder(["m/net.mlmodel", "m/mlmodel"]) is None


def test_the_environment_is_that_of_the_model_without_pips_options(folder):
    made = make_environment("net:1", folder)
    assert (made.pip_packages, made.python_version) == (("mlflow==3.17.2", "numpy"), "")
    (folder / "python_env.yaml").write_text("python: 3.1.4\n")
    with pytest.warns(UserWarning, match="logged with Python 3.1"):
        assert make_environment("net:1", folder).python_version == ""
    (folder / "requirements.txt").unlink()
    with pytest.raises(WebserviceException, match="does not list its packages"):
        make_environment("net:1", folder)


@pytest.mark.parametrize("text", ["", "flavors: [1]", "flavors:\n  r: {}\n", "a: [", "!!python/object:os.system {}"])
def test_a_model_that_python_cannot_load_is_refused(folder, text):
    check_flavour("net:1", folder)
    (folder / "MLmodel").write_text(text)
    with pytest.raises(WebserviceException, match="no flavour python_function"):
        check_flavour("net:1", folder)


def test_the_kind_is_recognised(tmp_path, folder):
    files = [SimpleNamespace(path=f"{folder.name}/{name}") for name in ("MLmodel", "model.pkl")]
    model: Any = SimpleNamespace(
        id="net:1",
        model_framework=None,
        manifest=lambda: SimpleNamespace(files=files),
        materialise=lambda: folder.parent,
    )
    assert recognise(model) == Recognised(Kind.MLFLOW, folder.name)


@pytest.fixture
def answer():
    """Answers a request with a model that adds the columns of each row."""
    seen = []

    def predict(table, params=None):
        seen.append(table)
        if params:
            return {"params": params}
        return np.asarray(table).sum(axis=1)

    scoring._model = SimpleNamespace(predict=predict)
    scoring._columns = []

    def ask(body):
        found = scoring.run(json.dumps(body))
        return found, seen[-1]

    return ask


def test_the_forms_of_a_request(answer):
    for body in ({"data": [[1, 2]]}, {"instances": [[1, 2]]}, {"inputs": [[1, 2]]}, [[1, 2]]):
        found, table = answer(body)
        assert found == {"predictions": [3]} and isinstance(table, np.ndarray)
    for body in (
        {"dataframe_split": {"columns": ["a", "b"], "data": [[1, 2]]}},
        {"dataframe_records": [{"a": 1, "b": 2}]},
        {"data": [{"a": 1, "b": 2}]},
    ):
        found, table = answer(body)
        assert found == {"predictions": [3]} and list(table.columns) == ["a", "b"]
    scoring._columns = ["p", "q"]
    assert list(answer({"data": [[1, 2]]})[1].columns) == ["p", "q"]
    assert answer({"data": [[1, 2]], "params": {"t": 1}})[0] == {"predictions": {"params": {"t": 1}}}


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "5",
        "{}",
        '{"data": []}',
        '{"data": [[1]], "inputs": [[1]]}',
        '{"data": 3}',
        '{"data": [[1]], "x": 1}',
        '{"dataframe_split": 5}',
        '{"dataframe_split": {"columns": ["a"], "data": [[1, 2]]}}',
        '{"data": [["a", "b"]]}',
    ],
)
def test_wrong_requests_are_refused_with_a_reason(answer, body):
    with pytest.raises(tensors.Wrong):
        scoring.run(body)
    (only,) = scoring.run([body])
    assert isinstance(only, tensors.Wrong)


def test_answers_are_plain():
    frame = pd.DataFrame({"label": ["a"], "score": [0.5]})
    assert scoring._to_plain(frame) == [{"label": "a", "score": 0.5}]
    assert scoring._to_plain([np.float64(1), (2,), None]) == [1.0, [2], None]
    assert json.dumps(scoring._to_plain({1: np.arange(2)})) == '{"1": [0, 1]}'
