"""MLflow in a job, the real one: what it logs and keeps is in the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import end_workspace, ended

from trainmaster import Estimator, Experiment, Model, Workspace

pytestmark = pytest.mark.timeout(600)

TRAIN = """\
import os
import mlflow
from azureml.core import Run

run = Run.get_context()
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
    info = mlflow.pyfunc.log_model(python_model=Net(), pip_requirements=[], **{place: "net"})
    assert list(mlflow.pyfunc.load_model(info.model_uri).predict([1, 2])) == [1, 2]
    with mlflow.start_run(nested=True, run_name="fold"):
        mlflow.log_metric("loss", 7)
        mlflow.log_artifact("notes.txt")
    client = mlflow.tracking.MlflowClient()
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


@pytest.mark.parametrize("release", ["2.22.5", "3.17.2"])
def test_what_mlflow_logs_and_keeps_is_in_the_run(experiment: Experiment, tmp_path: Path, release: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    packages = [f"mlflow-skinny=={release}", "numpy", "pandas"]
    run = experiment.submit(
        Estimator(str(tmp_path), compute_target="local", entry_script="train.py", pip_packages=packages)
    )
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert run.get_metrics() == {"loss": [1.0, 0.5, 1 / 3], "accuracy": 0.5, "f1": 0.25}
    assert {"lr": "0.1", "depth": "3", "phase": "two"}.items() <= run.get_tags().items()
    assert not [name for name in run.get_tags() if name.startswith("mlflow.")]
    names = run.get_file_names()
    assert {"notes.txt", "outputs/more/notes.txt", "logs/more/of.txt", "texts/a.json", "net/MLmodel"} <= set(names)
    children = {child.display_name: child for child in run.get_children()}
    assert {name: child.get_metrics() for name, child in children.items()} == {
        "fold": {"loss": 7},
        "second": {"loss": 8},
    }
    assert {child.get_status() for child in children.values()} == {"Completed"}
    assert children["fold"].get_file_names() == ["notes.txt"]
    # As in v1, a model is registered by where it was logged.
    model = run.register_model("net", "net")
    assert "MLmodel" in {
        path.split("/")[-1] for path in (each.path for each in Model(model.workspace, "net").manifest().files)
    }


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
