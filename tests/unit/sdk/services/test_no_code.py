"""Models that need no scoring script: how requests are read and refused, and which kind a model is."""

from __future__ import annotations

import base64
import doctest
import importlib.util
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cli import models_to_onnx
from trainmaster.job.errors import UserErrorException, WebserviceException
from trainmaster.sdk.services import no_code
from trainmaster.sdk.services.no_code.inputs import fact, find_inputs
from trainmaster.sdk.services.no_code.kinds import Kind, Recognised, recognise, torch_file, torch_kind
from trainmaster.sdk.services.no_code.packages import make_environment
from trainmaster.shared import package_texts

SCRIPTS = Path(no_code.__file__).parents[3] / "scoring" / "no_code"


def script(name: str) -> Any:
    """One of the scripts as a service imports it: by its path, without Trainmaster's name."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tensors = script("no_code_tensors")
messages = script("onnx_messages")
DOUBLE = tensors.Model(
    [tensors.Tensor("x", "float32", ("batch", 2)), tensors.Tensor("n", "int64", ("batch",))],
    [tensors.Tensor("y", "float32", ("batch", 2))],
    lambda arrays: {"y": arrays["x"] * arrays["n"][:, None]},
)
ONE = tensors.Model(
    [tensors.Tensor("x", "float32", ("batch", 2))],
    [tensors.Tensor("y", "float32", ("batch", 2))],
    lambda arrays: {"y": 1 / arrays["x"]},
)


def test_the_forms_of_a_request():
    for body in ({"data": [[1, 2]]}, {"inputs": {"x": [[1, 2]]}}, {"inputs": [[1, 2]]}, {"x": [[1, 2]]}, [[1, 2]]):
        assert ONE.answer(json.dumps(body))["y"].tolist() == [[1.0, 0.5]]
    assert DOUBLE.answer('{"inputs": {"x": [[1, 2]], "n": [3]}}')["y"].tolist() == [[3, 6]]
    assert np.isnan(ONE.answer('{"data": [[1, null]]}')["y"][0, 1])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "not valid JSON"),
        ("3", "must be a JSON object"),
        ("{}", "must be a JSON object"),
        ('{"data": [[1, 2]], "inputs": 1}', "must be a JSON object"),
        ('{"data": [[1, 2]], "more": 1}', "must be a JSON object"),
        ('{"data": []}', "it is empty"),
        ('{"data": [[1], [1, 2]]}', "different lengths"),
        ('{"data": [[1, "2"]]}', "it must hold numbers"),
        ('{"data": [[1, {}]]}', "it must hold numbers"),
        ('{"data": 1}', "an array of batch x 2, and is one of one value"),
        ('{"data": [1, 2]}', "an array of batch x 2, and is one of 2"),
        ('{"data": [[1, 2, 3]]}', "an array of batch x 2, and is one of 1 x 3"),
        ('{"inputs": {"x": [[1, 2]], "z": 1}}', "the request has no z"),
    ],
)
def test_wrong_requests_are_told_why(body, words):
    with pytest.raises(tensors.Wrong) as caught:
        ONE.answer(body)
    assert words in str(caught.value) and caught.value.bad_request


@pytest.mark.parametrize(
    ("n", "words"),
    [
        ("[1, 2]", "x has 1 rows, and n has 2"),
        ("[1.5]", "whole numbers"),
        ("[true]", "whole numbers"),
        ("[1e30]", "must be from"),
        # Whether it is a whole number still depends on who reads the JSON.
        ("[99999999999999999999]", "it must hold integers|must be from"),
        ("[null]", "it must hold integers"),
    ],
)
def test_whole_numbers(n, words):
    with pytest.raises(tensors.Wrong, match=words):
        DOUBLE.answer('{"inputs": {"x": [[1, 2]], "n": ' + n + "}}")
    with pytest.raises(tensors.Wrong, match=r'\{"inputs": \{"x": \[...\], "n": \[...\]\}\}'):
        DOUBLE.answer('{"data": [[1, 2]]}')


def test_truth_and_text():
    flags, texts = tensors.Tensor("b", "bool", None), tensors.Tensor("t", "object", ("rows",))
    assert flags.read([True, False]).tolist() == [True, False] and texts.read(["a"]).tolist() == ["a"]
    for tensor, value in ((flags, [1]), (texts, [1]), (texts, [None])):
        with pytest.raises(tensors.Wrong):
            tensor.read(value)


def test_a_batch_is_computed_at_once_and_told_apart():
    calls = []

    def compute(arrays):
        calls.append(arrays["x"].shape)
        if (arrays["x"] < 0).any():
            raise ValueError("negative")
        return {"y": arrays["x"] + 1}

    model = tensors.Model(ONE.inputs, ONE.outputs, compute)
    assert model.batched
    found = model.answer(['{"data": [[1, 1]]}', "broken", '{"data": [[2, 2], [3, 3]]}'])
    assert [found[0]["y"].tolist(), found[2]["y"].tolist()] == [[[2, 2]], [[3, 3], [4, 4]]]
    assert isinstance(found[1], tensors.Wrong) and calls == [(3, 2)]
    # One that cannot be computed does not spoil the others.
    found = model.answer(['{"data": [[1, 1]]}', '{"data": [[-1, 0]]}'])
    assert found[0]["y"].tolist() == [[2, 2]] and "cannot compute with these values" in str(found[1])


def test_models_whose_rows_cannot_be_told_apart_are_computed_one_by_one():
    whole = tensors.Model(ONE.inputs, [tensors.Tensor("y", "float32", ())], lambda arrays: {"y": arrays["x"].sum()})
    assert not whole.batched
    assert [each["y"] for each in whole.answer(['{"data": [[1, 1]]}', '{"data": [[2, 2]]}'])] == [2, 4]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["data", "inputs", "x", "n"]), inner),
    max_leaves=12,
)


@given(JSON)
def test_whatever_is_sent_is_answered_or_refused_with_a_sentence(body):
    text = json.dumps(body)
    for model in (ONE, DOUBLE):
        try:
            with np.errstate(all="ignore"):
                assert set(model.answer(text)) == {"y"}
        except tensors.Wrong as error:
            assert str(error).endswith(".")


def test_what_openapi_is_told():
    said = DOUBLE.openapi()
    inputs = said["input"]["properties"]["inputs"]
    assert inputs["required"] == ["n", "x"] and inputs["properties"]["n"] == {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 1,
    }
    row = said["output"]["properties"]["y"]["items"]
    assert row["minItems"] == row["maxItems"] == 2 and row["items"]["nullable"]
    assert [each["required"] for each in ONE.openapi()["input"]["oneOf"]] == [["data"], ["inputs"]]


class Known:
    """A model, as far as its kind goes."""

    id, name, run_id = "m:1", "m", None

    def __init__(self, place: Path, files: dict[str, bytes], framework: str | None = None, version: str = "") -> None:
        for name, data in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
        self._place, self._files = place, files
        self.model_framework, self.model_framework_version = framework, version

    def manifest(self) -> Any:
        return SimpleNamespace(files=[SimpleNamespace(path=name) for name in self._files])

    def materialise(self) -> Path:
        return self._place


def archive(*names: str) -> bytes:
    from io import BytesIO

    data = BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name in names:
            file.writestr(name, "")
    return data.getvalue()


@pytest.mark.parametrize(
    ("files", "framework", "found"),
    [
        ({"m.onnx": b""}, None, Recognised(Kind.ONNX, "m.onnx")),
        ({"f/m.onnx": b"", "f/labels.txt": b""}, "Onnx", Recognised(Kind.ONNX, "f/m.onnx")),
        ({"m.pkl": b""}, "ScikitLearn", Recognised(Kind.SKLEARN, "m.pkl")),
        ({"model": b""}, "ScikitLearn", Recognised(Kind.SKLEARN, "model")),
        ({"s/saved_model.pb": b"", "s/variables/v": b""}, "TensorFlow", Recognised(Kind.SAVED_MODEL, "s")),
        ({"m.pt": archive("m/code/a.py", "m/data.pkl")}, "PyTorch", Recognised(Kind.TORCHSCRIPT, "m.pt")),
        ({"m.pt2": archive("m/models/model.json")}, None, Recognised(Kind.TORCH_PROGRAM, "m.pt2")),
    ],
)
def test_kinds(tmp_path, files, framework, found):
    assert recognise(Known(tmp_path, files, framework)) == found


@pytest.mark.parametrize(
    ("files", "framework", "words"),
    [
        ({"m.pkl": b""}, None, "Register it with model_framework"),
        ({"m.bin": b""}, "Custom", "Its framework is Custom"),
        ({"a.onnx": b"", "b.onnx": b""}, "Onnx", "its kind is not clear"),
        ({"m.pt": archive("m/data.pkl")}, "PyTorch", "written by torch.save"),
        ({"m.pt": b"old"}, None, "written by torch.save"),
        ({"m.h5": b""}, "TfKeras", "its kind is not clear"),
    ],
)
def test_what_needs_code(tmp_path, files, framework, words):
    with pytest.raises(WebserviceException, match=words):
        recognise(Known(tmp_path, files, framework))


def test_a_file_of_torch_save_can_still_be_converted(tmp_path):
    model = Known(tmp_path, {"m.pt": archive("m/data.pkl")}, "PyTorch")
    assert torch_file(model) == Recognised(Kind.TORCH_PICKLE, "m.pt")
    assert torch_file(Known(tmp_path, {"m.pt": b""}, "Onnx")) is None
    assert torch_kind(tmp_path / "nothing") is Kind.TORCH_PICKLE


def test_facts_that_say_nothing(tmp_path):
    model = Known(tmp_path, {})
    model.facts = {"inputs": [{"name": "x", "type": "float32", "shape": None, "more": 1}], "outputs": [{"name": "y"}]}
    assert find_inputs(model) == [{"name": "x", "type": "float32", "shape": None}]
    with pytest.raises(WebserviceException, match="'outputs' of model m:1 does not describe"):
        fact(model, "outputs")


def test_the_release_of_the_model_is_served(tmp_path):
    from trainmaster.environments.frameworks import SKLEARN

    spec = make_environment(Known(tmp_path, {}, "ScikitLearn", "1.9.1"), SKLEARN)
    assert "scikit-learn==1.9.1" in spec.pip_packages and spec.accelerator == "cpu"
    with pytest.warns(UserWarning, match="does not name its release"):
        assert "scikit-learn==1.9.1" in make_environment(Known(tmp_path, {}, "ScikitLearn"), SKLEARN).pip_packages
    with pytest.raises(WebserviceException, match="not a release of SKLearn"):
        make_environment(Known(tmp_path, {}, "ScikitLearn", "newest"), SKLEARN)


def raw(array: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


X = {"dims": ["1", "2"], "dataType": 1, "rawData": raw(np.array([[1, 2]], "<f4"))}
N = {"dims": [1], "data_type": "7", "int64_data": ["3"]}


def test_the_form_of_v1s_onnx_services():
    for body in (X, {**X, "dims": [1, 2]}, {"dims": [1, 2], "dataType": 1, "floatData": [1, 2.0]}):
        found = messages.answer(ONE, json.dumps({"inputs": {"x": body}, "outputFilter": ["y"]}).encode())
        assert found["outputs"]["y"] == {
            "dims": ["1", "2"],
            "dataType": 1,
            "rawData": raw(np.array([[1, 0.5]], "<f4")),
            "dataLocation": "DEFAULT",
        }
    assert messages.answer(ONE, '{"data": [[1, 2]]}')["y"].tolist() == [[1.0, 0.5]]
    several = [json.dumps({"inputs": {"x": X, "n": N}}), '{"inputs": {"x": [[1, 1]], "n": [5]}}', '{"dataType":']
    first, second, third = messages.answer(DOUBLE, several)
    assert first["outputs"]["y"]["rawData"] == raw(np.array([[3, 6]], "<f8"))
    assert second["y"].tolist() == [[5, 5]]
    assert isinstance(third, tensors.Wrong)


def test_texts_and_truth_in_the_form_of_v1():
    ends = [tensors.Tensor("s", "object", (None,)), tensors.Tensor("b", "bool", (None,))]
    same = tensors.Model(ends, ends, lambda arrays: arrays)
    given = {
        "s": {"dims": ["2"], "dataType": 8, "stringData": [base64.b64encode(t.encode()).decode() for t in "aü"]},
        "b": {"dims": ["2"], "dataType": 9, "rawData": base64.b64encode(b"\x01\x00").decode()},
    }
    found = messages.answer(same, json.dumps({"inputs": given}))
    assert found == {"outputs": {name: {**each, "dataLocation": "DEFAULT"} for name, each in given.items()}}
    filtered = messages.answer(same, json.dumps({"inputs": given, "outputFilter": ["b"]}))
    assert list(filtered["outputs"]) == ["b"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dataType": 11}, r"x: its dataType must be 1 \(float32\), and is 11"),
        ({"dataType": None}, "x: its dataType must be 1"),
        ({"dims": [2, 2]}, "dims say 4 elements, and there are 2"),
        ({"dims": [2, 1]}, "x: it must be an array of batch x 2, and is one of 2 x 1"),
        ({"dims": "x"}, "dims must be a list of sizes"),
        ({"dims": [-1, 2]}, "dims must be a list of sizes"),
        ({"dims": [0, 2], "rawData": ""}, "x: it is empty"),
        ({"rawData": "AAA"}, "are base64"),
        ({"rawData": 5}, "are base64"),
        ({"rawData": "AAAA"}, "rawData has 3 bytes, and an element takes 4"),
        ({"colour": 1}, "x: it has no part colour"),
    ],
)
def test_wrong_requests_in_the_form_of_v1(change, words):
    with pytest.raises(tensors.Wrong, match=words):
        messages.answer(ONE, json.dumps({"inputs": {"x": {**X, **change}}}))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"inputs": {"x": X}, "outputFilter": ["z"]}, "outputFilter must be a list of outputs. This model has y"),
        ({"inputs": {"x": X}, "outputFilter": 3}, "outputFilter must be a list"),
        ({"inputs": {"z": X}}, "The inputs of this model are x: the request lacks x"),
        ({"inputs": {"x": X}, "colour": 1}, "Unknown part colour"),
        ({"inputs": {"x": {k: X[k] for k in ("dims", "dataType")}}}, "its values are missing"),
    ],
)
def test_wrong_bodies_in_the_form_of_v1(body, words):
    with pytest.raises(tensors.Wrong, match=words):
        messages.answer(ONE, json.dumps(body))


def test_the_texts_of_a_package():
    contents = package_texts.Contents("mnist", "score.py", ("mnist:3",), "3.11", {"A": "1"}, ("torch==2.13.0+cpu",))
    settings = json.loads(package_texts.server_settings(contents))
    assert settings["model_dir"] == "code/azureml-models/mnist/3" and settings["variables"] == {"A": "1"}
    assert (settings["code"], settings["working"]) == ("code", "code")
    within = json.loads(package_texts.server_settings(replace(contents, folder_name="src")))
    assert (within["code"], within["working"]) == ("code/src", "code")
    assert package_texts.dockerfile(contents).startswith("FROM python:3.11-slim\n")
    assert "torch==2.13.0+cpu" in package_texts.readme(contents)
    compile(package_texts.APP, "app.py", "exec")


@pytest.mark.parametrize("module", [package_texts, models_to_onnx])
def test_examples_in_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("text", ["x", "x:float32", ":float32:1", "x:float33:1", "x:float32:1:2"])
def test_inputs_that_cannot_be_read(text):
    with pytest.raises(UserErrorException, match="is not NAME:TYPE:SIZES"):
        models_to_onnx._input(text)
