"""From a trained model to ONNX and to a service without a line of code: in jobs, afterwards, and as a package.

One environment for each framework, with all that its tests need: the same for the job that trains, for the conversion
and for the service.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended, until
from tests.generated_requests import Generated
from tests.service_bench import ask

from trainmaster import (
    Dataset,
    Environment,
    Experiment,
    InferenceConfig,
    LocalWebservice,
    Model,
    PyTorch,
    SKLearn,
    TensorFlow,
)
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.run.run import Run
from trainmaster.sdk.services.environment import SERVER_PACKAGES
from trainmaster.sdk.services.packaging import ModelPackage
from trainmaster.sdk.workspace.workspace import Workspace

PROGRAMS = Path(__file__).parent / "onnx_programs"
FLOWERS = json.dumps({"data": [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]})

# Frameworks are installed.
pytestmark = pytest.mark.timeout(1200)


def trained(workspace: Workspace, place: Path, kind: Any, program: str, *packages: str) -> Run:
    """A program of `onnx_programs`, in a job whose environment has what converts and serves."""
    place.mkdir(parents=True)
    shutil.copy(PROGRAMS / program, place / "train.py")
    estimator = kind(
        str(place),
        entry_script="train.py",
        compute_target="local",
        pip_packages=[*packages, "onnx", "onnxruntime", *SERVER_PACKAGES],
    )
    run = Experiment(workspace, "onnx").submit(estimator)
    details = ended(run)
    assert details["status"] == "Completed", (details.get("error"), run.get_details_with_logs()["logFiles"])
    assert run.get_metrics()["difference"] < 1e-5
    return run


@pytest.fixture(scope="module")
def torch_run(frameworks: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("torch") / "project"
    return trained(frameworks, place, PyTorch, "torch_models.py", "onnxscript")


@pytest.fixture(scope="module")
def sklearn_run(frameworks: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("sklearn") / "project"
    return trained(frameworks, place, SKLearn, "sklearn_models.py", "skl2onnx", "pandas")


@pytest.fixture
def deployed(frameworks: Workspace) -> Iterator[Callable[..., Any]]:
    """Deploys a model without code; the services are deleted with the test."""
    made: list[Any] = []

    def deploy(name: str, model: Model, **settings: Any) -> Any:
        config = LocalWebservice.deploy_configuration(**settings)
        made.append(Model.deploy(frameworks, name, [model], deployment_config=config))
        made[-1].wait_for_deployment()
        return made[-1]

    yield deploy
    for service in made:
        service.delete()


def test_models_of_tensorflow_convert_and_serve(frameworks, deployed, tmp_path):
    run = trained(frameworks, tmp_path / "project", TensorFlow, "tensorflow_models.py", "tf2onnx")
    service = deployed("saved", run.register_model("saved", "outputs/saved", model_framework="TensorFlow"))
    picture = [[[0.5]] * 8] * 8
    answer = service.run(json.dumps({"data": [picture, picture]}))
    ((name, digits),) = answer.items()
    assert [len(row) for row in digits] == [10, 10] and sum(digits[0]) == pytest.approx(1, abs=1e-5)
    described = fetched(service.port, "/swagger.json")["components"]["schemas"]
    assert described["ServiceOutput"]["required"] == [name]
    status, words = ask(service, json.dumps({"data": [picture[:7]]}))
    assert status == 400 and "it must be an array of batch x 8 x 8 x 1, and is one of 1 x 7 x 8 x 1." in words


def test_models_of_torch_convert_and_serve(frameworks, torch_run, deployed, framework_home, tmp_path):
    """The script exports; what it registered as TorchScript is converted afterwards, and served as it is."""
    script = torch_run.register_model(
        "script", "outputs/script.pt", model_framework="PyTorch", model_framework_version="2.13"
    )
    command = [sys.executable, "-m", "trainmaster.cli", "models", "to-onnx", "script", "--workspace"]
    command += [str(frameworks.path), "--json"]
    unknown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert unknown.returncode == 2 and "the inputs of the model are unknown" in unknown.stdout + unknown.stderr
    assert Model.list(frameworks, "script-onnx") == []
    (tmp_path / "rows.csv").write_text("a,b,c,d\n1,2,3,4\n5,6,7,8\n")
    script.update(sample_input_dataset=Dataset.Tabular.from_delimited_files(str(tmp_path / "rows.csv")))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    converted = Model(frameworks, "script-onnx")
    assert json.loads(done.stdout)["id"] == converted.id == "script-onnx:1"
    assert converted.model_framework == Model.Framework.ONNX and converted.run_id == torch_run.id
    assert converted.lineage == script.lineage and converted.facts["converted_from"] == script.id
    assert converted.facts["parity"]["max_absolute"] < 1e-5
    asked = '{"data": [[1, 2, 3, 4]]}'
    services = [deployed(f"from-{each.name}", each) for each in (script, converted)]
    answers = [service.run(asked)["output"] for service in services]
    assert answers[1][0] == pytest.approx(answers[0][0], abs=1e-5)
    for service in services:
        status, words = ask(service, '{"data": [[1, 2, 3]]}')
        assert status == 400 and "input: it must be an array of batch x 4, and is one of 1 x 3." in words


def test_a_program_of_torch_export_needs_no_code(torch_run, deployed):
    service = deployed("program", torch_run.register_model("program", "outputs/program.pt2", model_framework="PyTorch"))
    asked = {"tokens": [[1, 2, 3, 4, 5]] * 2, "weight": [[0.5] * 4, [1] * 4]}
    answer = service.run(json.dumps({"inputs": asked}))
    half, whole = answer["output_0"]
    assert whole == pytest.approx([2 * each for each in half]) and answer["output_1"] == [15, 15]
    for wrong, words in (
        ({**asked, "tokens": [[1.5, 2, 3, 4, 5]] * 2}, "tokens: it must hold whole numbers."),
        ({**asked, "weight": [[1] * 3] * 2}, "weight: it must be an array of batch x 4, and is one of 2 x 3."),
        ({**asked, "weight": [[1] * 4]}, "tokens has 2 rows, and weight has 1."),
    ):
        status, said = ask(service, json.dumps({"inputs": wrong}))
        assert status == 400 and words in said, said


def test_an_onnx_model_needs_no_code(frameworks, torch_run, deployed, tmp_path):
    model = torch_run.register_model("net", "outputs/net.onnx", model_framework=Model.Framework.ONNX)
    assert model.facts["parity"]["max_absolute"] < 1e-5 and model.facts["inputs"][0]["shape"] == ["batch", 4]
    service = deployed("net", model, max_batch_size=8, max_batch_wait_ms=1)
    status, answer = ask(service, '{"data": [[1, 2, 3, 4], [4, 3, 2, 1]]}')
    assert status == 200 and set(answer) == {"logits", "hidden"} and len(answer["logits"]) == 2
    assert ask(service, '{"inputs": {"x": [[4, 3, 2, 1]]}}')[1]["logits"][0] == pytest.approx(answer["logits"][1])
    for wrong, words in (
        ('{"data": [[1, 2]]}', "x: it must be an array of batch x 4, and is one of 1 x 2."),
        ('{"data": [[1, 2, 3, "a"]]}', "it must hold numbers"),
        ('{"data": [[1, 2, 3, 4], [1]]}', "its rows have different lengths"),
        ('{"inputs": {"y": [[1, 2, 3, 4]]}}', "the request lacks x"),
        ("{}", 'must be a JSON object {\\"data\\"'),
        ("nothing", "not valid JSON"),
    ):
        status, said = ask(service, wrong)
        assert status == 400 and words in said, said
    described = fetched(service.port, "/swagger.json")["components"]["schemas"]
    assert described["ServiceOutput"]["required"] == ["hidden", "logits"]
    assert described["ServiceInput"]["oneOf"][0]["properties"]["data"]["items"]["maxItems"] == 4
    generated = Generated(service.port, tmp_path / "generated", "--mode", "negative", examples=100)
    try:
        found = [each.status for each in generated.exchanges()]
        assert len(found) > 100 and found.count(400) > 50
    finally:
        generated.end()
    files = Path(Model.package(frameworks, [model]).location)
    assert "onnxruntime==" in (files / "requirements.lock").read_text()
    assert {path.name for path in (files / "code").iterdir()} >= {"score.py", "no_code.json", "azureml-models"}
    assert (files / "code/azureml-models/net/1/net.onnx").is_file()


def test_an_estimator_needs_no_code(frameworks, sklearn_run, deployed):
    said = {"model_framework": Model.Framework.SCIKITLEARN, "model_framework_version": "1.9.1"}
    service = deployed("iris", sklearn_run.register_model("iris", "outputs/iris.joblib", **said))
    assert service.run(FLOWERS) == {"predict": [0, 2]}
    more = service.run(json.dumps({"data": [[5.1, 3.5, 1.4, 0.2]], "method": "predict_proba"}))
    assert more["predict_proba"][0][0] > 0.9
    status, words = ask(service, '{"data": [[1, 2, 3]]}')
    assert status == 400 and "Each row must have 4 values, and one has 3 values." in words
    table = deployed("table", sklearn_run.register_model("table", "outputs/table.joblib", **said))
    by_row = table.run('{"data": [{"age": 25, "city": "b"}, {"city": "a", "age": 25}]}')
    assert by_row == table.run('{"inputs": {"age": [25, 25], "city": ["b", "a"]}}') != {}
    status, words = ask(table, '{"data": [{"age": 25}]}')
    assert status == 400 and "Each row must have the columns age, city." in words


def test_what_needs_code_says_so(frameworks, tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"weights")
    model = Model.register(frameworks, str(tmp_path / "weights.bin"), "weights", model_framework="Custom")
    with pytest.raises(WebserviceException, match="its kind is not clear"):
        Model.deploy(frameworks, "weights", [model])
    (tmp_path / "broken.onnx").write_bytes(b"no graph")
    model = Model.register(frameworks, str(tmp_path / "broken.onnx"), "broken")
    with pytest.raises(WebserviceException, match="its file is not ONNX"):
        Model.deploy(frameworks, "broken", [model])
    assert "weights" not in frameworks.webservices


SCHEMA_SCRIPT = """
import numpy as np
import pandas as pd
from azureml.core.model import Model
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.parameter_types.pandas_parameter_type import PandasParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
from inference_schema.schema_decorators import input_schema, output_schema

def init():
    global factor
    with open(Model.get_model_path("factor")) as file:
        factor = float(file.read())

@input_schema("data", NumpyParameterType(np.array([[1.0, 2.0]])))
@input_schema("table", PandasParameterType(pd.DataFrame({"a": [1], "b": ["x"]})))
@input_schema("scale", StandardPythonParameterType(2.0))
@output_schema(NumpyParameterType(np.array([1.0])))
def run(data, table, scale):
    assert isinstance(table, pd.DataFrame)
    return factor * data.sum(axis=1) * scale + table["a"].to_numpy()
"""


def test_a_package_runs_anywhere(frameworks, tmp_path):
    """inference-schema in a package: installed from its lock into a new Python, served there by plain uvicorn."""
    (tmp_path / "score.py").write_text(SCHEMA_SCRIPT)
    (tmp_path / "factor.txt").write_text("10")
    model = Model.register(frameworks, str(tmp_path / "factor.txt"), "factor")
    environment = Environment("schema")
    for name in ("inference-schema[numpy-support,pandas-support]",):
        environment.python.conda_dependencies.add_pip_package(name)
    config = InferenceConfig("score.py", source_directory=str(tmp_path), environment=environment)
    made = Model.package(frameworks, [model], config, generate_dockerfile=True)
    made.wait_for_creation(show_output=True)
    assert made.state == "Succeeded" and ModelPackage(frameworks, made.operation_id, None).models == ["factor:1"]
    folder = tmp_path / "taken"
    made.save(folder)
    with pytest.raises(WebserviceException, match="is not empty"):
        made.save(folder)
    assert "--require-hashes" in (folder / "Dockerfile").read_text()
    assert str(frameworks.path) not in "".join(path.read_text() for path in folder.glob("*.*"))
    python = new_python(folder)
    with served(folder, python) as port:
        asked = {"data": [[1, 2], [3, 4]], "table": [{"a": 1, "b": "q"}, {"a": 2, "b": "w"}], "scale": 2.0}
        assert posted(port, asked) == (200, [61.0, 142.0])
        assert posted(port, {**asked, "data": [[1, 2, 3]]})[0] == 400
        assert posted(port, {"data": [[1, 2]]})[0] == 400
        schemas = fetched(port, "/swagger.json")["components"]["schemas"]
    assert schemas["ServiceInput"]["required"] == ["data", "scale", "table"]
    assert schemas["ServiceInput"]["properties"]["table"]["items"]["required"] == ["a", "b"]
    assert schemas["ServiceOutput"]["type"] == "array"


def new_python(folder: Path) -> Path:
    """A virtual environment of the package's lock and nothing else, from pip's sources of this machine."""
    tools = Tools(dict(os.environ))
    place = folder.parent / "anywhere"
    exact = ["--no-deps", "--require-hashes", "-r", str(folder / "requirements.lock")]
    for command in (
        ["venv", "--python", sys.executable, str(place)],
        ["pip", "install", "--python", str(place / "bin" / "python"), *tools.source_options, *exact],
    ):
        done = subprocess.run(
            tools.uv_command(command), env=tools.uv_environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    installed = {path.name.partition("-")[0] for path in place.glob("lib/python*/site-packages/*.dist-info")}
    assert "trainmaster" not in installed and "uvicorn" in installed
    return place / "bin" / "python"


class served:
    """`uvicorn app:app` in the folder of a package, on a port that it chose itself."""

    def __init__(self, folder: Path, python: Path) -> None:
        self._log = folder.parent / "uvicorn.log"
        command = [str(python), "-m", "uvicorn", "app:app", "--port", "0"]
        variables = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(folder.parent)}
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log)

    def __enter__(self) -> int:
        until(lambda: "running on http" in self._log.read_text() or self._process.poll() is not None)
        said = self._log.read_text()
        assert "running on http" in said, said
        return int(said.partition("running on http://127.0.0.1:")[2].partition(" ")[0])

    def __exit__(self, *about: Any) -> None:
        self._process.terminate()
        self._process.wait(120)


def posted(port: int, body: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/score", body=json.dumps(body), headers={"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def fetched(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path)
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found
