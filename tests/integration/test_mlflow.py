"""MLflow in a job, the real one: what it logs and keeps is in the run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import end_workspace, ended
from tests.mlflow_calls import start_run

from trainmaster import Estimator, Experiment, Model, Run, Workspace
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = pytest.mark.timeout(600)

TRAIN = """\
import os
import mlflow
from azureml.core import Run

run = Run.get_context()
kept = "kept-" + mlflow.__version__[0]
mlflow.set_tracking_uri(run.experiment.workspace.get_mlflow_tracking_uri())
mlflow.set_experiment("whatever it is called")
os.mkdir("made")
for name in ("notes.txt", "made/of.txt"):
    with open(name, "w") as file:
        file.write("notes")


class Net(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input):
        return model_input


with mlflow.start_run(run_name="main") as active:
    assert active.info.run_id == run.id, active.info
    mlflow.log_params({"lr": 0.1, "depth": 3})
    mlflow.set_tag("phase", "two")
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"accuracy": 0.5, "f1": 0.25})
    mlflow.log_artifact("notes.txt")
    mlflow.log_artifact("notes.txt", "outputs/more")
    mlflow.log_artifacts("made", "logs/more")
    mlflow.log_dict({"a": 1}, "texts/a.json")
    place = "name" if mlflow.__version__ >= "3" else "artifact_path"
    info = mlflow.pyfunc.log_model(
        python_model=Net(), pip_requirements=[], registered_model_name=kept, **{place: "net"}
    )
    for address in (info.model_uri, "models:/" + kept + "/1", "runs:/" + run.id + "/net"):
        assert list(mlflow.pyfunc.load_model(address).predict([1, 2])) == [1, 2], address
    with mlflow.start_run(nested=True, run_name="fold"):
        mlflow.log_metric("loss", 7)
        mlflow.log_artifact("notes.txt")
    client = mlflow.tracking.MlflowClient()
    paths = [each.path for each in client.list_artifacts(run.id, "net")]
    assert "net/MLmodel" in paths and len(paths) == len(set(paths)), paths
    assert [each.path for each in client.list_artifacts(run.id, "texts")] == ["texts/a.json"]
    assert [each.info.run_name for each in client.search_runs(["0"], "metrics.loss = 7")] == ["fold"]
    client.set_registered_model_alias(kept, "champion", "1")
    client.set_model_version_tag(kept, "1", "checked", "yes")
    version = client.get_model_version_by_alias(kept, "champion")
    assert (version.version, version.run_id, version.tags) == ("1", run.id, {"checked": "yes"}), version
    assert kept in [each.name for each in client.search_registered_models()]
    client.create_registered_model("new-of-" + kept, {"kind": "net", "old": "yes"}, "before it has versions")
    client.set_registered_model_tag("new-of-" + kept, "owner", "ada")
    client.delete_registered_model_tag("new-of-" + kept, "old")
    client.update_registered_model("new-of-" + kept, "described")
    client.create_model_version("new-of-" + kept, "runs:/" + run.id + "/net", run.id)
    client.rename_registered_model("new-of-" + kept, "renamed-" + kept)
    renamed = client.get_registered_model("renamed-" + kept)
    assert (renamed.tags, renamed.description) == ({"kind": "net", "owner": "ada"}, "described"), renamed
    assert [each.version for each in renamed.latest_versions] == ["1"], renamed
    found = client.search_registered_models("tags.owner = 'ada' and name LIKE '%" + kept + "'")
    assert [each.name for each in found] == ["renamed-" + kept], found
    assert [each.version for each in client.get_latest_versions("renamed-" + kept, ["none"])] == ["1"]
    mlflow.pyfunc.load_model("models:/renamed-" + kept + "/latest")
    for name in (kept, "renamed-" + kept):
        try:
            client.rename_registered_model("absent", name) if name == kept else client.create_registered_model(name)
            raise SystemExit("what cannot be done was done")
        except mlflow.exceptions.MlflowException as error:
            assert error.error_code in ("RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS"), error
    client.create_registered_model("gone")
    client.delete_registered_model("gone")
    assert not client.search_registered_models("name = 'gone'")
    try:
        client.get_model_version(kept, "9")
        raise SystemExit("there is no such version")
    except mlflow.exceptions.MlflowException as error:
        assert error.error_code == "RESOURCE_DOES_NOT_EXIST", error
    assert [(each.step, each.value) for each in client.get_metric_history(run.id, "loss")][2] == (2, 1 / 3)
    assert client.get_run(run.id).data.params == {"lr": "0.1", "depth": "3"}
    try:
        mlflow.log_param("lr", 0.2)
        raise SystemExit("a parameter was changed")
    except mlflow.exceptions.MlflowException as error:
        assert "Changing param values" in str(error)
with mlflow.start_run(run_name="second"):
    mlflow.log_metric("loss", 8)
assert not os.path.exists("mlruns")
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experiment]:
    workspace = Workspace.create("mlflow", path=tmp_path_factory.mktemp("mlflow") / "workspace", show_output=False)
    yield Experiment(workspace, "mlflow")
    end_workspace(workspace.path)


def packages(release: str) -> list[str]:
    """The same for all, so that an environment is built once."""
    return [f"mlflow-skinny=={release}", "numpy", "pandas", "scikit-learn"]


def call_mlflow(workspace: Workspace, path: str, **arguments: Any) -> Any:
    """What MLflow's clients outside of the job get."""
    method = "POST" if path.endswith("runs/search") else "GET"
    found = workspace.connection.call("mlflow.call", method=method, path=f"2.0/mlflow/{path}", arguments=arguments)
    assert found["status"] == 200, found
    return json.loads(found["body"])


def seen_by_mlflow(run: Run) -> dict[str, dict[str, Any]]:
    """The parameters and the last values of a run, as MLflow's clients outside of the job see them."""
    data = call_mlflow(run.experiment.workspace, "runs/get", run_id=run.id)["run"]["data"]
    return {kind: {each["key"]: each["value"] for each in data.get(kind, [])} for kind in ("params", "metrics")}


@pytest.mark.parametrize("release", ["2.22.5", "3.17.2"])
def test_what_mlflow_logs_and_keeps_is_in_the_run(experiment: Experiment, tmp_path: Path, release: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    # Searching finds the runs of the experiment, so each release has its own.
    run = Experiment(experiment.workspace, f"mlflow-{release[0]}").submit(
        Estimator(str(tmp_path), compute_target="local", entry_script="train.py", pip_packages=packages(release))
    )
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert run.get_metrics() == {"loss": [1.0, 0.5, 1 / 3], "accuracy": 0.5, "f1": 0.25}
    assert {"lr": "0.1", "depth": "3", "phase": "two"}.items() <= run.get_tags().items()
    assert not [name for name in run.get_tags() if name.startswith("mlflow.")]
    names = run.get_file_names()
    assert {"notes.txt", "outputs/more/notes.txt", "logs/more/of.txt", "texts/a.json", "net/MLmodel"} <= set(names)
    seen = seen_by_mlflow(run)
    assert {"lr": "0.1", "depth": "3"}.items() <= seen["params"].items()
    children = {child.display_name: child for child in run.get_children()}
    assert {name: child.get_metrics() for name, child in children.items()} == {
        "fold": {"loss": 7},
        "second": {"loss": 8},
    }
    assert {child.get_status() for child in children.values()} == {"Completed"}
    assert children["fold"].get_file_names() == ["notes.txt"]
    # A name has its own tags, which are not those of its versions.
    (name,) = call_mlflow(run.experiment.workspace, "registered-models/search", filter="name LIKE 'renamed-%'")[
        "registered_models"
    ][-1:]
    assert name["description"] == "described" and {"key": "owner", "value": "ada"} in name["tags"]
    assert Model(run.experiment.workspace, name["name"]).run_id == run.id
    # As in v1, a model is registered by where it was logged.
    model = run.register_model("net", "net")
    assert "MLmodel" in {
        path.split("/")[-1] for path in (each.path for each in Model(model.workspace, "net").manifest().files)
    }


AUTOLOG = """\
import mlflow
from mlflow import MlflowClient
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

mlflow.set_experiment("iris")
mlflow.sklearn.autolog(registered_model_name="iris")
features, labels = load_iris(return_X_y=True, as_frame=True)
model = LogisticRegression(max_iter=500).fit(features, labels)

client = MlflowClient()
run = mlflow.last_active_run()
data = client.get_run(run.info.run_id).data
assert data.params["max_iter"] == "500" and data.metrics["training_accuracy_score"] > 0.9, data
paths = [each.path for each in client.list_artifacts(run.info.run_id, "model")]
assert "model/MLmodel" in paths and len(paths) == len(set(paths)), paths

found = mlflow.search_logged_models(output_format="list")
(logged,) = [each for each in found if each.source_run_id == run.info.run_id]
assert logged.name == "model" and logged.source_run_id == run.info.run_id, logged
assert len(mlflow.search_logged_models(filter_string="metrics.training_accuracy_score > 0.9")) == 1
assert len(mlflow.search_logged_models(filter_string="name = 'another'")) == 0
outputs = client.get_run(run.info.run_id).outputs.model_outputs
assert [each.model_id for each in outputs] == [logged.model_id]

again = mlflow.sklearn.load_model("models:/iris/latest")
assert (again.predict(features) == model.predict(features)).all()

mlflow.sklearn.autolog(log_models=False)
GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0, 10.0]}, cv=2).fit(features, labels)
search = mlflow.last_active_run()
trials = mlflow.search_runs(filter_string="tags.mlflow.parentRunId = '" + search.info.run_id + "'")
assert sorted(trials["params.C"]) == ["0.1", "1.0", "10.0"], trials
assert "cv_results.csv" in [each.path for each in client.list_artifacts(search.info.run_id)]
"""


def test_what_autolog_finds_out_is_in_the_run_and_its_model_in_the_workspace(
    experiment: Experiment, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(AUTOLOG)
    run = experiment.submit(
        Estimator(str(tmp_path), compute_target="local", entry_script="train.py", pip_packages=packages("3.17.2"))
    )
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert run.get_metrics()["training_accuracy_score"] > 0.9
    assert run.get_tags()["max_iter"] == "500"
    model = Model(experiment.workspace, "iris")
    assert (model.version, model.run_id) == (1, run.id)
    # The model that it logged stays known, with its metrics, and its files are those of the run.
    own = call_mlflow(experiment.workspace, "runs/get", run_id=run.id)["run"]
    (output,) = own["outputs"]["model_outputs"]
    found = call_mlflow(experiment.workspace, f"logged-models/{output['model_id']}")["model"]
    assert found["info"]["status"] == "LOGGED_MODEL_READY"
    assert found["info"]["artifact_uri"] == own["info"]["artifact_uri"] + "/model"
    assert "training_accuracy_score" in {each["key"] for each in found["data"]["metrics"]}
    assert own["inputs"]["dataset_inputs"]
    assert any(each.path.endswith("MLmodel") for each in model.manifest().files)


OTHER_FILES = """\
import os, sys
import mlflow
from mlflow.exceptions import MlflowException

run_id = sys.argv[1]
client = mlflow.MlflowClient()
found = mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="notes/a.txt")
assert open(found).read() == "hello"
folder = mlflow.artifacts.download_artifacts("runs:/" + run_id + "/notes")
assert sorted(os.listdir(folder)) == ["a.txt", "large.bin"], os.listdir(folder)
assert os.path.getsize(os.path.join(folder, "large.bin")) == 5_000_000
assert [each.path for each in client.list_artifacts(run_id)] == ["notes"]
assert mlflow.artifacts.load_text(client.get_run(run_id).info.artifact_uri + "/notes/a.txt") == "hello"
for name in ("none.txt", "secret", "../state.db"):
    try:
        mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=name)
        raise SystemExit(name + " was read")
    except MlflowException:
        pass
try:
    client.log_text(run_id, "mine", "more.txt")
    raise SystemExit("another run was changed")
except MlflowException as error:
    assert "not possible in a job" in str(error), error
"""


def test_a_job_reads_artifacts_of_other_runs(experiment: Experiment, tmp_path: Path) -> None:
    other = start_run(experiment.workspace)
    files = WorkspaceFolder(Path(experiment.workspace.path)).run(other).files
    (files / "notes").mkdir()
    (files / "notes" / "a.txt").write_text("hello")
    (files / "notes" / "large.bin").write_bytes(os.urandom(5_000_000))
    (files / "secret").symlink_to("/etc/passwd")
    (tmp_path / "train.py").write_text(OTHER_FILES)
    run = experiment.submit(
        Estimator(
            str(tmp_path),
            compute_target="local",
            entry_script="train.py",
            script_params={other: ""},
            pip_packages=packages("3.17.2"),
        )
    )
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")


OF_V1 = """\
import mlflow
from azureml.core import Dataset

open("people.csv", "w").write("name,age\\nAda,36\\n")
table = Dataset.Tabular.from_delimited_files(path="people.csv").to_pandas_dataframe()
mlflow.log_metric("age", int(table["age"][0]))
"""


def test_packages_of_the_sdk_bring_what_they_brought_in_v1(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OF_V1)
    packages = ["azureml-mlflow", "azureml-dataset-runtime[pandas,fuse]"]
    estimator = Estimator(str(tmp_path), compute_target="local", entry_script="train.py", pip_packages=packages)
    with pytest.warns(UserWarning, match="azureml-mlflow by mlflow"):
        run = experiment.submit(estimator)
    assert ended(run)["status"] == "Completed"
    assert run.get_metrics() == {"age": 36}


def test_a_place_of_the_users_own_is_left_alone(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nprint(os.environ['MLFLOW_TRACKING_URI'])\n")
    variables = {"MLFLOW_TRACKING_URI": "http://tracking.example:5000"}
    run = experiment.submit(
        Estimator(
            str(tmp_path),
            compute_target="local",
            entry_script="train.py",
            user_managed=True,
            environment_variables=variables,
        )
    )
    assert ended(run)["status"] == "Completed"
    (log,) = run.get_all_logs(str(tmp_path / "got"))
    assert Path(log).read_text() == "http://tracking.example:5000\n"
