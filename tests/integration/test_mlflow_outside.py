"""MLflow outside of jobs, in a workspace on this machine: no server, and one kind of run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import end_workspace
from tests.mlflow_releases import RELEASES, find_python_of_user, run_client

from trainmaster import Model, Workspace

pytestmark = pytest.mark.timeout(600)

NOTEBOOK = """
import mlflow
from trainmaster import Workspace

ws = Workspace(path={place!r})
mlflow.set_tracking_uri(ws.get_mlflow_tracking_uri())
mlflow.set_experiment("nights " + mlflow.__version__)
with mlflow.start_run(run_name="first") as run:
    mlflow.log_param("lr", 0.1)
    mlflow.log_params({{"depth": 3, "kind": "tree"}})
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({{"accuracy": 0.5, "f1": 0.25}})
    mlflow.set_tag("phase", "two")
    mlflow.log_text("hello", "notes/a.txt")
    with mlflow.start_run(nested=True, run_name="fold"):
        mlflow.log_metric("loss", 7)
client = mlflow.MlflowClient()
found = client.get_run(run.info.run_id)
assert found.data.params == {{"lr": "0.1", "depth": "3", "kind": "tree"}}, found.data.params
assert found.data.metrics == {{"loss": 1 / 3, "accuracy": 0.5, "f1": 0.25}}, found.data.metrics
assert [point.value for point in client.get_metric_history(run.info.run_id, "loss")] == [1, 0.5, 1 / 3]
assert [each.path for each in client.list_artifacts(run.info.run_id, "notes")] == ["notes/a.txt"]
assert mlflow.artifacts.load_text(found.info.artifact_uri + "/notes/a.txt") == "hello"
try:
    mlflow.MlflowClient().get_run("0" * 32)
    raise SystemExit("there is no such run")
except mlflow.exceptions.MlflowException as error:
    assert error.error_code == "RESOURCE_DOES_NOT_EXIST", error
print(run.info.run_id)
"""


OURS = """
import mlflow, os
from trainmaster import Workspace

ws = Workspace(path={place!r})
mlflow.set_tracking_uri(ws.get_mlflow_tracking_uri())
print(sorted(os.listdir(mlflow.artifacts.download_artifacts("models:/plain/1"))))
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = Workspace.create("here", path=tmp_path_factory.mktemp("mlflow") / "work space", show_output=False)
    yield made
    end_workspace(made.path)


def use(workspace: Workspace, script: str, release: str) -> str:
    return run_client(
        script.format(place=str(Path(workspace.path))), release=release, python=find_python_of_user(release)
    )


@pytest.mark.parametrize("release", RELEASES)
def test_runs_of_a_notebook_are_runs_of_the_workspace(workspace: Workspace, release: str) -> None:
    # Before it, MLflow 2 prints addresses.
    run_id = use(workspace, NOTEBOOK, release).split()[-1]
    experiment = workspace.experiments[f"nights {release}"]
    run = workspace.get_run(run_id)
    assert [each.id for each in experiment.get_runs()] == [run_id]
    assert (run.display_name, run.status) == ("first", "Completed")
    assert run.get_metrics()["loss"] == [1, 0.5, pytest.approx(1 / 3)]
    assert run.get_tags()["phase"] == "two"
    assert "notes/a.txt" in run.get_file_names()
    assert [child.display_name for child in run.get_children()] == ["fold"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_model_of_the_workspace_is_downloaded(workspace: Workspace, tmp_path: Path, release: str) -> None:
    if not Model.list(workspace, name="plain"):
        (tmp_path / "weights.txt").write_text("1 2 3")
        Model.register(workspace, str(tmp_path / "weights.txt"), "plain")
    assert use(workspace, OURS, release).splitlines()[-1] == "['weights.txt']"
