"""v1's Workspace: named ones are made on first use; changed, removed, and what only means something in Azure."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.conftest import end_workspace, ended, stop_dispatcher

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.v1.authentication import InteractiveLoginAuthentication, ServicePrincipalAuthentication
from trainmaster.shared.folders import WorkspaceFolder

CONFIG = {"subscription_id": "s", "resource_group": "g", "workspace_name": "mine"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize(
    "opened",
    [
        lambda: Workspace("s", "g", "mine"),
        lambda: Workspace(
            subscription_id="s", resource_group="g", workspace_name="mine", auth=object(), tags={"a": "b"}
        ),
        lambda: Workspace.get(name="mine", subscription_id="s", resource_group="g"),
        lambda: Workspace.from_config(),
        lambda: Workspace.from_config(auth=InteractiveLoginAuthentication(tenant_id="t")),
    ],
)
def test_made_on_first_use(here, home, capsys, opened):
    (here / "config.json").write_text(json.dumps(CONFIG))
    ws = opened()
    assert capsys.readouterr().out.splitlines() == [f"Created workspace 'mine' in {home / 'workspaces' / 'mine'}"]
    assert (ws.name, ws.subscription_id, ws.resource_group, ws.location) == ("mine", "s", "g", "local")
    again = opened()
    assert capsys.readouterr().out == ""
    assert again.get_details() == ws.get_details()
    assert list(Workspace.list("s")) == ["mine"]


def test_made_once_by_many_programs(home):
    program = "from trainmaster import Workspace; print(Workspace('s', 'g', 'crowd').get_details()['id'])"
    programs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(4)
    ]
    ids = {each.communicate(timeout=120)[0].splitlines()[-1] for each in programs}
    assert len(ids) == 1


def test_name_decides_which_workspace_it_is(home):
    first = Workspace("s", "g", "mine")
    other = Workspace("another", "group", "mine")
    assert other.get_details()["id"] == first.get_details()["id"]
    assert (other.subscription_id, other.resource_group) == ("another", "group")
    assert (Workspace.get("mine").subscription_id, Workspace.get("mine").resource_group) == ("s", "g")


@pytest.mark.parametrize("name", ["", "../up", "a", None])
def test_names_that_cannot_be(home, name):
    for make in (lambda: Workspace("s", "g", name), lambda: Workspace.get(name)):
        with pytest.raises(UserErrorException, match="cannot be the name of a workspace"):
            make()
    assert not home.exists()


def test_config_with_scope(here, home):
    scope = "/subscriptions/S1/resourceGroups/G1/providers/Microsoft.MachineLearningServices/workspaces/scoped"
    (here / ".azureml").mkdir()
    (here / ".azureml/config.json").write_text(json.dumps({"Scope": scope}))
    ws = Workspace.from_config()
    assert (ws.name, ws.subscription_id, ws.resource_group) == ("scoped", "S1", "G1")


def test_old_config_folder_upward(here, home):
    (here / "aml_config").mkdir()
    (here / "aml_config/config.json").write_text(json.dumps(CONFIG))
    below = here / "deep" / "er"
    below.mkdir(parents=True)
    assert Workspace.from_config(path=str(below)).name == "mine"


def test_config_written_and_found(here, home):
    ws = Workspace("s", "g", "mine")
    ws.write_config(path="project")
    assert json.loads((here / "project/.azureml/config.json").read_text()).items() >= CONFIG.items()
    assert Workspace.from_config(path="project").path == ws.path


def test_create_records_what_azure_alone_knows(home):
    made = Workspace.create(
        "mine",
        auth=ServicePrincipalAuthentication("t", "app", "s3cr3t-word"),
        subscription_id="s",
        resource_group="g",
        location="eastus2",
        create_resource_group=True,
        storage_account="/storage",
        hbi_workspace=True,
        default_cpu_compute_target=Workspace.DEFAULT_CPU_CLUSTER_CONFIGURATION,
        exist_ok=True,
    )
    details = made.get_details()
    assert (details["location"], details["storageAccount"], details["hbiWorkspace"]) == ("eastus2", "/storage", True)
    assert made.get_default_compute_target("CPU").nodes == 2
    assert "gpu-cluster" not in made.compute_targets
    assert "s3cr3t" not in (made.path / "workspace.json").read_text()
    end_workspace(made.path)


def test_update(home):
    ws = Workspace("s", "g", "mine")
    ws.update(friendly_name="Mine", description="ours", tags={"team": "vision"}, image_build_compute="cpu-cluster")
    again = Workspace.get("mine")
    details = again.get_details()
    assert (details["friendlyName"], details["description"], again.tags) == ("Mine", "ours", {"team": "vision"})
    assert details["imageBuildCompute"] == "cpu-cluster"
    ws.update(description="other")
    assert Workspace.get("mine").tags == {"team": "vision"}
    with pytest.raises(UserErrorException, match="tags must be a dict"):
        ws.update(tags=["a"])


def test_deleted_with_its_own_files_only(workspace, submit, gate):
    workspace.get_default_keyvault().set_secret("token", "hunter22")
    (workspace.path / "notes.txt").write_text("a person's own")
    (workspace.path / "datastore").mkdir(exist_ok=True)
    (workspace.path / "datastore" / "data.csv").write_text("1,2")
    wait = gate("gate")
    run = submit(wait.wait)
    wait.await_arrival()
    with pytest.raises(WorkspaceException, match=run.id):
        workspace.delete()
    wait.open()
    assert ended(run)["status"] == "Completed"
    keys = list((workspace.path.parent / "home" / "keys").iterdir())
    assert len(keys) == 1
    workspace.delete()
    left = {str(path.relative_to(workspace.path)) for path in workspace.path.rglob("*")}
    assert left == {"notes.txt", "datastore", "datastore/data.csv"}
    assert not keys[0].exists()
    with pytest.raises(WorkspaceException, match="there is no workspace"):
        workspace.delete()


def test_deleted_whole(home):
    ws = Workspace.create("mine", show_output=False)
    Experiment(ws, "e").start_logging(snapshot_directory=None).complete()
    assert (ws.path / "trainmaster.db").exists()
    ws.delete(delete_dependent_resources=True)
    assert not ws.path.exists()
    assert Workspace.list("s") == {}


def test_members_that_mean_little_here(shared):
    assert shared.update_dependencies(container_registry="r", force=True) is shared
    shared.sync_keys()
    assert shared.list_keys() == shared.private_endpoints == shared.linked_services == {}
    assert shared.list_connections() == []
    assert shared.diagnose_workspace({}) == {}
    shared.add_private_endpoint(object())
    shared.delete_private_endpoint_connection("x")
    assert shared.discovery_url.startswith("file:")
    for call in (lambda: shared.set_connection("n", "c", "t", "a", "v"), lambda: shared.get_connection("n")):
        with pytest.raises(NotImplementedError, match="get_default_keyvault"):
            call()


def test_collections_are_dicts_that_can_be_called(shared):
    names = ("compute_targets", "datastores", "experiments", "models", "images", "webservices", "environments")
    for name in (*names, "datasets"):
        found = getattr(shared, name)
        assert isinstance(found, dict)
        assert list(found()) == list(found)
    assert "local" in shared.compute_targets()
    assert {"workspaceblobstore", "workspacefilestore"} <= set(shared.datastores())
    assert shared.datastores["workspacefilestore"].datastore_type == "AzureFile"


def test_setup_is_the_workspace_of_this_folder(here, home):
    (here / "config.json").write_text(json.dumps(CONFIG))
    assert Workspace.setup().name == "mine"


def test_run_in_a_workspace_made_on_first_use(home, project):
    ws = Workspace("s", "g", "mine")
    script = "import os; print(os.environ['AZUREML_ARM_SUBSCRIPTION'], os.environ['AZUREML_ARM_WORKSPACE_NAME'])"
    source = project(train=script)
    run = Experiment(ws, "e").submit(
        Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True)
    )
    assert ended(run)["status"] == "Completed"
    assert "s mine" in (WorkspaceFolder(ws.path).run(run.id).logs / "70_driver_log.txt").read_text()
    end_workspace(ws.path)
    stop_dispatcher(WorkspaceFolder(ws.path))
