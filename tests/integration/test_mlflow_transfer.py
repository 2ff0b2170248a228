"""Leaving MLflow in one command, and going back: everything arrives, and a second time nothing is done."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PATIENCE, end_workspace, until
from tests.mlflow_releases import find_python_of_user, run_client

from trainmaster import Model, Run, Workspace
from trainmaster.cli.mlflow import find_address
from trainmaster.job.errors import UserErrorException

pytestmark = pytest.mark.timeout(900)

OLD = """
import mlflow, os, pandas
from mlflow import MlflowClient
from mlflow.entities import Metric

os.chdir({folder!r})
client = MlflowClient()
mlflow.set_experiment("spiral")


class Net(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input):
        return model_input


with mlflow.start_run(run_name="outer") as outer:
    mlflow.log_params({{"lr": 0.1, "long": "x" * 3000, **{{f"p{{n}}": n for n in range(150)}}}})
    mlflow.set_tag("phase", "two")
    client.log_batch(outer.info.run_id, [Metric("loss", 1 / (n + 1), 1000 + n, n) for n in range(2500)])
    mlflow.log_metric("odd", float("nan"), step=3)
    mlflow.log_text("hello", "notes/a.txt")
    mlflow.log_input(mlflow.data.from_pandas(pandas.DataFrame({{"a": [1]}}), name="table"), context="training")
    for _ in range(3):
        mlflow.pyfunc.log_model(name="net", python_model=Net(), pip_requirements=[], registered_model_name="net")
    with mlflow.start_run(nested=True, run_name="inner"):
        mlflow.log_metric("loss", 7)
client.delete_model_version("net", "2")
client.set_registered_model_alias("net", "champion", "3")
client.set_model_version_tag("net", "3", "checked", "yes")
with mlflow.start_run(run_name="failed") as failed:
    pass
client.set_terminated(failed.info.run_id, "FAILED", 1234567)
with mlflow.start_run(run_name="gone") as gone:
    mlflow.log_metric("loss", 1)
client.delete_run(gone.info.run_id)
hidden = client.create_experiment("hidden")
client.set_terminated(client.create_run(hidden).info.run_id)
client.delete_experiment(hidden)
print(outer.info.run_id, failed.info.run_id, gone.info.run_id)
"""

LOOK = """
import mlflow, json
from mlflow import MlflowClient
from mlflow.entities import ViewType

client = MlflowClient()
spiral = client.get_experiment_by_name("spiral").experiment_id
found = {}
for run in client.search_runs([spiral], run_view_type=ViewType.ALL):
    found[run.info.run_name] = {
        "params": run.data.params,
        "metrics": {key: str(value) for key, value in run.data.metrics.items()},
        "phase": run.data.tags.get("phase"),
        "parent": bool(run.data.tags.get("mlflow.parentRunId")),
        "times": [run.info.start_time, run.info.end_time],
        "state": [run.info.status, run.info.lifecycle_stage],
        "loss": [
            [each.step, each.timestamp, each.value] for each in client.get_metric_history(run.info.run_id, "loss")
        ],
        "files": sorted(each.path for each in client.list_artifacts(run.info.run_id, "notes")),
        "inputs": [each.dataset.name for each in run.inputs.dataset_inputs],
        "outputs": len(run.outputs.model_outputs),
    }
versions = {each.version: dict(each.tags) for each in client.search_model_versions("name = 'net'")}
model = mlflow.pyfunc.load_model("models:/net@champion")
print(json.dumps({
    "runs": found,
    "versions": versions,
    "answer": list(model.predict([1, 2])),
    "hidden": client.get_experiment_by_name("hidden").lifecycle_stage,
}))
"""


def use_mlflow(address: str, script: str) -> str:
    return run_client(script, address, python=find_python_of_user())


def look(address: str) -> Any:
    return json.loads(use_mlflow(address, LOOK).splitlines()[-1])


def command(workspace: Workspace, *words: str, expect: int = 0) -> Any:
    folder = Path(workspace.path).parent / "elsewhere"
    folder.mkdir(exist_ok=True)
    program = find_python_of_user().with_name("trainmaster")
    done = subprocess.run(
        [str(program), *words, "--json", "--workspace", str(workspace.path)],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        # Where MLflow keeps the files of a new database.
        cwd=folder,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = Workspace.create("copy", path=tmp_path_factory.mktemp("copy") / "workspace", show_output=False)
    yield made
    end_workspace(made.path)


def test_everything_arrives_and_goes_back(workspace: Workspace, tmp_path: Path) -> None:
    database = tmp_path / "old.db"
    address = f"sqlite:///{database}"
    outer, failed, _ = use_mlflow(address, OLD.format(folder=str(tmp_path))).split()[-3:]
    before = look(address)

    # Interrupted after one of the experiments, and done again as a whole.
    command(workspace, "import", "mlflow", str(database), "--experiment", "hidden")
    report = command(workspace, "import", "mlflow", str(database))
    assert report["problems"] == []
    assert (report["runs"], report["logged_models"], report["versions"]) == (4, 3, 2)

    run = workspace.get_run(outer)
    assert (run.display_name, run.status) == ("outer", "Completed")
    assert len(run.get_metrics()["loss"]) == 2500
    assert "notes/a.txt" in run.get_file_names()
    assert workspace.get_run(failed).get_details()["endTimeUtc"].startswith("1970-01-01T00:20:34")
    assert Model(workspace, "net").version == 3
    here = workspace.get_mlflow_tracking_uri()
    assert look(here) == before

    again = command(workspace, "import", "mlflow", str(database))
    assert (again["runs"], again["versions"], again["problems"]) == (0, 0, [])
    assert again["unchanged_runs"] == 4 + 1

    back = tmp_path / "new.db"
    report = command(workspace, "export", "mlflow", str(back))
    assert report["problems"] == []
    assert look(f"sqlite:///{back}") == before
    assert command(workspace, "export", "mlflow", str(back))["runs"] == 0


FOLDER = """
import mlflow
mlflow.set_experiment("of a folder")
with mlflow.start_run(run_name="first") as run:
    mlflow.log_metric("loss", 0.5)
    mlflow.log_text("hello", "a.txt")
print(run.info.run_id)
"""


def test_a_folder_of_the_second_generation(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "mlruns"
    allowed = {"MLFLOW_ALLOW_FILE_STORE": "true"}
    run_id = run_client(FOLDER, folder.as_uri(), python=find_python_of_user(), variables=allowed).split()[-1]
    assert command(workspace, "import", "mlflow", str(folder))["problems"] == []
    run = workspace.get_run(run_id)
    assert (run.get_metrics(), run.get_file_names()) == ({"loss": 0.5}, ["a.txt"])


MANY = """
import mlflow, os
from mlflow import MlflowClient
from mlflow.entities import Metric

os.chdir({folder!r})
client = MlflowClient()
place = client.create_experiment("many", artifact_location={folder!r})
for number in range(12):
    run_id = client.create_run(place, run_name=str(number)).info.run_id
    client.log_batch(run_id, [Metric("loss", 1 / (n + 1), 1000 + n, n) for n in range(200)])
    client.log_param(run_id, "number", number)
    client.log_text(run_id, "hello " * number, "notes.txt")
    client.set_terminated(run_id)
mlflow.set_experiment("many")
for number in range(3):
    with mlflow.start_span("of a language model"):
        pass
mlflow.flush_trace_async_logging()
"""


def test_an_import_that_was_killed_is_continued(workspace: Workspace, tmp_path: Path) -> None:
    database = tmp_path / "many.db"
    use_mlflow(f"sqlite:///{database}", MANY.format(folder=str(tmp_path)))
    words = [str(find_python_of_user().with_name("trainmaster")), "import", "mlflow", f"sqlite:///{database}"]
    copy = subprocess.Popen([*words, "--workspace", str(workspace.path)], cwd=tmp_path, stdout=subprocess.DEVNULL)

    def find_runs() -> list[Run]:
        return list(workspace.experiments["many"].get_runs()) if "many" in workspace.experiments else []

    try:
        # Importing MLflow takes long on a busy machine.
        until(lambda: len(find_runs()) >= 3 or copy.poll() is not None, 3 * PATIENCE, "a part of the import")
    finally:
        copy.kill()
        copy.wait(PATIENCE)
    report = command(workspace, "import", "mlflow", f"sqlite:///{database}")
    assert report["problems"] == [] and report["runs"] + report["unchanged_runs"] == 12
    assert report["left_out"] == ["3 traces of experiment 'many'"]
    runs = find_runs()
    assert sorted(int(run.display_name) for run in runs) == list(range(12))
    for run in runs:
        # Neither too few values nor too many.
        assert run.get_metrics()["loss"] == [1 / (n + 1) for n in range(200)]
        assert run.get_details()["parameters"] == {"number": run.display_name}
        assert (run.status, run.get_file_names()) == ("Completed", ["notes.txt"])


@pytest.mark.parametrize("source", ["nothing", "http://127.0.0.1:9", "nonsense://x"])
def test_a_source_that_is_not_there(workspace: Workspace, tmp_path: Path, source: str) -> None:
    program = find_python_of_user().with_name("trainmaster")
    words = ["import", "mlflow", source, "--workspace", str(workspace.path)]
    few = {**os.environ, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    done = subprocess.run(
        [str(program), *words], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, env=few
    )
    assert done.returncode not in (0, 70), done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 6, done.stderr


def test_a_source_without_experiments_stays_as_it_is(tmp_path: Path) -> None:
    """MLflow would make a database of it, or a folder for runs."""
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("no database, but long enough to look at " * 100)
    (tmp_path / "folder").mkdir()
    before = {path: path.stat().st_size for path in tmp_path.iterdir()}
    absent, empty = f"sqlite:///{tmp_path}/absent.db", f"sqlite:///{tmp_path}/empty.db"
    folder = (tmp_path / "folder").as_uri()
    for source in (absent, empty, str(tmp_path / "empty.db"), str(tmp_path / "text.db"), folder, folder[7:]):
        with pytest.raises(UserErrorException, match=r"no experiments of MLflow at|cannot be read"):
            find_address(source)
    assert {path: path.stat().st_size for path in tmp_path.iterdir()} == before
    assert find_address(absent, must_exist=False) == absent
