"""Logged models, datasets, inputs and outputs, with real clients of MLflow."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.mlflow_releases import NEWEST, RELEASES, address_of, run_client
from tests.server_process import ServerProcess

pytestmark = pytest.mark.timeout(600)

_BEGIN = """
import json, os, tempfile
import mlflow
import numpy as np
from mlflow import MlflowClient
from sklearn.linear_model import LogisticRegression

# Which packages a model needs is found out by importing it in another process, which takes long.
mlflow.models.infer_pip_requirements = lambda *arguments, **more: ["scikit-learn"]
client = MlflowClient()
values, classes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
"""

_NEW = (
    _BEGIN
    + """
experiment = mlflow.set_experiment("new").experiment_id
mlflow.sklearn.autolog(log_post_training_metrics=False)
with mlflow.start_run() as run:
    LogisticRegression(C=0.5).fit(values, classes)
mlflow.sklearn.autolog(disable=True)

found = mlflow.get_run(run.info.run_id)
(given,) = found.inputs.dataset_inputs
assert {tag.key: tag.value for tag in given.tags} == {"mlflow.data.context": "train"}, given
(output,) = found.outputs.model_outputs
model = mlflow.get_logged_model(output.model_id)
assert (str(model.status), model.source_run_id, model.params["C"]) == ("READY", run.info.run_id, "0.5"), model
assert {metric.run_id for metric in model.metrics} == {run.info.run_id}
assert mlflow.sklearn.load_model(f"models:/{model.model_id}").predict(values).tolist() == classes.tolist()
assert mlflow.pyfunc.load_model(f"runs:/{run.info.run_id}/model").predict(values).tolist() == classes.tolist()
assert "model/MLmodel" in [each.path for each in client.list_artifacts(run.info.run_id, "model")]

external = mlflow.create_external_model(name="external", params={"size": "large"}, tags={"stage": "Dev"})
validation = mlflow.data.from_numpy(values, name="validation")
with mlflow.start_run() as second:
    mlflow.log_input(validation, context="test")
    mlflow.log_metrics({"acc": 0.75, "loss": 0.5}, model_id=external.model_id, dataset=validation)
    mlflow.log_metric("acc", 0.25, step=3, model_id=model.model_id)
    client.log_inputs(second.info.run_id, models=[mlflow.entities.LoggedModelInput(model.model_id)])
    client.log_outputs(second.info.run_id, [mlflow.entities.LoggedModelOutput(external.model_id, step=4)])

def search(text=None, **more):
    return [each.name for each in mlflow.search_logged_models([experiment], text, output_format="list", **more)]

assert search() == ["external", "model"]
assert search("metrics.acc > 0.5") == ["external"] and search("params.C = '0.5' AND name LIKE 'mod%'") == ["model"]
assert search("tags.stage ILIKE 'dev'") == ["external"] and search("status = 'READY' AND model_type = ''") == search()
assert search("metrics.acc > 0", datasets=[{"dataset_name": "validation"}]) == ["external"]
assert search(order_by=[{"field_name": "metrics.acc", "ascending": True}]) == ["model", "external"]
page = client.search_logged_models([experiment], max_results=1)
(last,) = client.search_logged_models([experiment], max_results=1, page_token=page.token)
assert last.name == "model"
for text in ("name > 'a'", "name = 'a' OR name = 'b'", "foo.bar = 'a'"):
    try:
        search(text)
    except mlflow.MlflowException as error:
        assert error.error_code == "INVALID_PARAMETER_VALUE", error
    else:
        raise AssertionError(text)

client.log_model_params(external.model_id, {"depth": "3"})
client.set_logged_model_tags(external.model_id, {"stage": "prod", "other": "1"})
client.delete_logged_model_tag(external.model_id, "other")
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/notes.txt", "w") as file:
        file.write("hello")
    client.log_model_artifact(external.model_id, f"{folder}/notes.txt")
    listed = {each.path: each.file_size for each in client.list_logged_model_artifacts(external.model_id)}
    assert listed["notes.txt"] == 5, listed
    copied = mlflow.artifacts.download_artifacts(f"models:/{external.model_id}", dst_path=f"{folder}/copy")
    assert open(f"{copied}/notes.txt").read() == "hello"
changed = mlflow.get_logged_model(external.model_id)
assert changed.params == {"size": "large", "depth": "3"} and changed.tags["stage"] == "prod"
assert "other" not in changed.tags

doomed = client.create_logged_model(experiment, name="doomed")
client.delete_logged_model(doomed.model_id)
assert "doomed" not in search()
try:
    mlflow.get_logged_model(doomed.model_id)
except mlflow.MlflowException as error:
    assert error.error_code == "RESOURCE_DOES_NOT_EXIST"
print(json.dumps([run.info.run_id, second.info.run_id, model.model_id, external.model_id]))
"""
)

_OLD = (
    _BEGIN
    + """
mlflow.set_experiment("old " + mlflow.__version__)
class Adder(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [value + 1 for value in model_input]

with mlflow.start_run() as run:
    how = {"name": "adder"} if mlflow.__version__ >= "3" else {"artifact_path": "adder"}
    logged = mlflow.pyfunc.log_model(python_model=Adder(), **how)
    numbers = mlflow.data.from_numpy(values, targets=classes, name="numbers")
    mlflow.log_input(numbers, context="training", tags={"part": "a"})
    mlflow.log_input(numbers, context="training", tags={"part": "a"})
for address in (logged.model_uri, f"runs:/{run.info.run_id}/adder"):
    assert mlflow.pyfunc.load_model(address).predict([1, 2]) == [2, 3]
(given,) = mlflow.get_run(run.info.run_id).inputs.dataset_inputs
assert (given.dataset.name, given.dataset.digest) == ("numbers", numbers.digest)
assert {tag.key: tag.value for tag in given.tags} == {"mlflow.data.context": "training", "part": "a"}
assert json.loads(given.dataset.profile)["features_size"] == 4
assert json.loads(given.dataset.schema)["mlflow_tensorspec"]["features"]
print(run.info.run_id)
"""
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


def test_logged_models(server: ServerProcess) -> None:
    printed = run_client(_NEW, address_of(server, "team"), server.token, NEWEST).splitlines()[-1]
    run_id, second, model_id, external = json.loads(printed)
    lineage = server.call("team", "runs.lineage", run_id=run_id)
    assert [(each["model_id"], each["status"]) for each in lineage["logged_models"]] == [(model_id, "READY")]
    assert [each["context"] for each in lineage["inputs"]] == ["train"]
    # A run that logs values of a model has read it.
    assert set(server.call("team", "runs.lineage", run_id=second)["logged_models_in"]) == {model_id, external}
    # The files of a model are in a folder of its own, which is removed with the run.
    folders = next(server.root.rglob("logged-models"))
    assert (folders / model_id / "MLmodel").exists() and (folders / external / "notes.txt").exists()
    removed = server.call("team", "runs.delete", run_ids=[run_id])
    assert removed["bytes"] > 0 and sorted(each.name for each in folders.iterdir()) == [external]
    answer = server.request("GET", f"/mlflow/team/api/2.0/mlflow/logged-models/{model_id}")
    assert answer.status == 404 and answer.json()["error_code"] == "RESOURCE_DOES_NOT_EXIST"


@pytest.mark.parametrize("release", RELEASES)
def test_models_and_datasets_of_runs(server: ServerProcess, release: str) -> None:
    run_id = run_client(_OLD, address_of(server, "team"), server.token, release).splitlines()[-1]
    lineage = server.call("team", "runs.lineage", run_id=run_id)
    assert [(each["name"], each["context"]) for each in lineage["inputs"]] == [("numbers", "training")]
    assert len(lineage["logged_models"]) == (release == NEWEST)
