"""Experiments and runs of MLflow's real clients are experiments and runs of the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mlflow_releases import RELEASES, address_of, run_client
from tests.server_process import ServerProcess

from trainmaster import Estimator, Experiment, Workspace

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


_CHECKS = """
import mlflow, os
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException, RestException

client = MlflowClient()

def refuse(code, words, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except MlflowException as error:
        assert error.error_code == code, error
        assert words in str(error), error
    else:
        raise AssertionError(f"{call} was not refused")
"""

_EXPERIMENTS = (
    _CHECKS
    + """
name = "trial of " + mlflow.__version__
assert client.get_experiment("0").name == "Default"
made = client.create_experiment(name, tags={"team": "red"})
assert client.get_experiment(made).tags == {"team": "red"}
assert client.get_experiment(made).artifact_location == f"mlflow-artifacts:/{made}"
refuse("RESOURCE_ALREADY_EXISTS", "already exists", client.create_experiment, name)
refuse("RESOURCE_DOES_NOT_EXIST", "No Experiment with id=99999", client.get_experiment, "99999")
client.set_experiment_tag(made, "team", "blue")
assert client.get_experiment(made).tags == {"team": "blue"}
if hasattr(client, "delete_experiment_tag"):
    client.set_experiment_tag(made, "a/b", "\\u20ac" * 5000)
    client.delete_experiment_tag(made, "a/b")
    assert client.get_experiment(made).tags == {"team": "blue"}
    refuse("RESOURCE_DOES_NOT_EXIST", "No tag with name: a/b", client.delete_experiment_tag, made, "a/b")
client.rename_experiment(made, name + " renamed")
run = client.create_run(made)
client.delete_experiment(made)
assert client.get_experiment(made).lifecycle_stage == "deleted"
assert client.get_run(run.info.run_id).info.lifecycle_stage == "deleted"
refuse("INVALID_PARAMETER_VALUE", "must be in the 'active' state", client.create_run, made)
refuse("RESOURCE_ALREADY_EXISTS", "already exists", client.create_experiment, name + " renamed")
client.restore_experiment(made)
assert client.get_run(run.info.run_id).info.lifecycle_stage == "active"
assert client.get_experiment_by_name(name) is None
"""
)

_RUNS = (
    _CHECKS
    + """
mlflow.set_experiment("runs of " + mlflow.__version__)
with mlflow.start_run(run_name="first", tags={"kind": "test"}) as run:
    mlflow.log_param("lr", 0.5)
    mlflow.set_tag("note", "n" * 9000)
    with mlflow.start_run(nested=True) as child:
        mlflow.log_param("lr", 0.25)
run_id = run.info.run_id
found = client.get_run(run_id)
assert found.info.status == "FINISHED" and found.info.end_time >= found.info.start_time
assert found.info.run_name == "first" and found.data.params == {"lr": "0.5"}
assert found.data.tags["kind"] == "test" and len(found.data.tags["note"]) == 8000
refuse("INVALID_PARAMETER_VALUE", "Changing param values is not allowed", client.log_param, run_id, "lr", 1)
client.log_param(run_id, "lr", 0.5)
refuse("INVALID_PARAMETER_VALUE", "exceeds the maximum length", client.log_param, run_id, "k" * 251, 1)
client.log_param(run_id, "long", "v" * 6001)
assert len(client.get_run(run_id).data.params["long"]) == 6000

# A finished run is opened again, and ends again.
with mlflow.start_run(run_id=run_id):
    assert client.get_run(run_id).info.status == "RUNNING"
    mlflow.set_tag("again", "yes")
client.set_terminated(run_id, "FAILED", end_time=1_900_000_000_123)
found = client.get_run(run_id)
assert (found.info.status, found.info.end_time) == ("FAILED", 1_900_000_000_123)
client.update_run(run_id, name="second")
assert client.get_run(run_id).data.tags["mlflow.runName"] == "second"
client.set_tag(run_id, "mlflow.runName", "third")
assert client.get_run(run_id).info.run_name == "third"
client.delete_tag(run_id, "again")
refuse("RESOURCE_DOES_NOT_EXIST", "No tag with name: again", client.delete_tag, run_id, "again")

client.delete_run(run_id)
assert client.get_run(run_id).info.lifecycle_stage == "deleted"
refuse("INVALID_PARAMETER_VALUE", "must be in the 'active' state", client.set_tag, run_id, "a", "b")
refuse("INVALID_PARAMETER_VALUE", "must be in the 'active' state", client.log_param, run_id, "a", "b")
assert client.get_run(child.info.run_id).info.lifecycle_stage == "active"
client.restore_run(run_id)
client.set_tag(run_id, "a", "b")
refuse("RESOURCE_DOES_NOT_EXIST", "Run with id=nope not found", client.get_run, "nope")
named = {"mlflow.runName": "b"}
refuse("INVALID_PARAMETER_VALUE", "different values", client.create_run, "0", run_name="a", tags=named)
assert client.create_run("0").info.run_name
"""
)


@pytest.mark.parametrize("release", RELEASES)
def test_every_call_about_experiments_and_runs(server: ServerProcess, release: str) -> None:
    run_client(_EXPERIMENTS + _RUNS.removeprefix(_CHECKS), address_of(server, "team"), server.token, release)


def test_a_client_cannot_open_the_run_of_a_job_again(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('done')\n")
    workspace = Workspace(path=server.root / "workspaces" / "team")
    job = Experiment(workspace, "jobs").submit(
        Estimator(str(tmp_path), entry_script="train.py", compute_target="local", user_managed=True)
    )
    job.wait_for_completion()
    script = f"""
run_id = {job.id!r}
assert client.get_run(run_id).info.status == "FINISHED"
refuse("INVALID_PARAMETER_VALUE", "stays so", mlflow.start_run, run_id=run_id)
client.log_param(run_id, "found", "later")
client.set_terminated(run_id)
"""
    run_client(_CHECKS + script, address_of(server, "team"), server.token)
    assert job.get_status() == "Completed"
    assert job.get_details()["parameters"] == {"found": "later"}
    workspace.connection.close()
