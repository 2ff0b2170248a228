"""Workspaces: made, found, configured; what cannot be opened says why and is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import end_workspace, ended

from trainmaster import Experiment, Workspace
from trainmaster.job.errors import ServiceException, UserErrorException, WorkspaceException


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_created_and_opened(tmp_path):
    made = Workspace.create("mine", path=tmp_path / "w", subscription_id="s", resource_group="g", tags={"a": "b"})
    again = Workspace(path=tmp_path / "w")
    assert (again.name, again.subscription_id, again.resource_group, again.location) == ("mine", "s", "g", "local")
    assert again.tags == {"a": "b"}
    assert again.get_details() == made.get_details()
    assert repr(again) == "Workspace.create(name='mine', subscription_id='s', resource_group='g')"
    end_workspace(made.path)


def test_v1_parameters_are_accepted(home):
    made = Workspace.create(
        *("mine", None, "sub", "group", "westeurope", True, "basic", None, "friendly"),
        storage_account="x",
        hbi_workspace=False,
        exist_ok=True,
        show_output=False,
    )
    assert made.location == "westeurope"
    assert made.path == home / "workspaces" / "mine"
    assert Workspace.get("mine", subscription_id="sub", resource_group="group").get_details() == made.get_details()
    assert Workspace("sub", "group", "mine").name == "mine"
    assert list(Workspace.list("sub")) == ["mine"]
    end_workspace(made.path)


def test_created_twice(workspace):
    with pytest.raises(WorkspaceException, match="already"):
        Workspace.create("tested", path=workspace.path)
    again = Workspace.create("tested", path=workspace.path, exist_ok=True, show_output=False)
    assert again.get_details() == workspace.get_details()


@pytest.mark.parametrize("name", ["../up", "a", "x" * 34, "a\nb", "-first", "", "a/b", None, 3])
def test_names_that_cannot_be(name, home):
    with pytest.raises(UserErrorException, match="cannot be the name of a workspace"):
        Workspace.create(name)
    assert not home.exists()


def test_no_workspace_there(tmp_path):
    with pytest.raises(WorkspaceException, match="there is no workspace"):
        Workspace(path=tmp_path / "nowhere")
    with pytest.raises(WorkspaceException, match="there is no workspace"):
        Workspace.get("unknown", path=tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WorkspaceException, match="no workspace can be created"):
        Workspace.create("mine", path=tmp_path / "file" / "w")
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', "\x00"])
def test_identity_that_is_broken(tmp_path, text):
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "workspace.json").write_text(text)
    with pytest.raises(WorkspaceException, match=r"workspace\.json"):
        Workspace(path=folder)
    assert (folder / "workspace.json").read_text() == text


def test_default_workspace_is_made_on_first_use(here, home, capsys):
    ws = Workspace.from_config()
    assert ws.path == home / "workspaces" / "default"
    assert "Created workspace 'default'" in capsys.readouterr().out
    assert Workspace.from_config().get_details() == ws.get_details()
    assert capsys.readouterr().out == ""
    end_workspace(ws.path)


def test_config_is_found_upward(here, workspace):
    workspace.write_config()
    assert json.loads((here / ".azureml/config.json").read_text())["workspace_name"] == "tested"
    below = here / "deep" / "er"
    below.mkdir(parents=True)
    for place in (None, here, below, here / ".azureml" / "config.json", str(below)):
        assert Workspace.from_config(path=place).path == workspace.path


def test_config_under_another_name(here, workspace):
    workspace.write_config(path="project", file_name="other.json")
    assert Workspace.from_config(path="project", _file_name="other.json").path == workspace.path
    with pytest.raises(UserErrorException, match="no workspace config file"):
        Workspace.from_config(path="project")


@pytest.mark.parametrize(
    "place", [".azureml/config.json", "aml_config/config.json", "config.json", "aml_config/project.json"]
)
def test_config_of_v1(here, home, place):
    (here / place).parent.mkdir(exist_ok=True)
    (here / place).write_text('{"subscription_id": "s", "resource_group": "g", "workspace_name": "old-one"}')
    ws = Workspace.from_config()
    assert (ws.name, ws.subscription_id, ws.resource_group) == ("old-one", "s", "g")
    assert ws.path == home / "workspaces" / "old-one"


def test_config_with_scope(here):
    scope = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/scoped"
    (here / "config.json").write_text(json.dumps({"Scope": scope}))
    assert Workspace.from_config().name == "scoped"


def test_config_json_of_somebody_else(here, home):
    (here / "config.json").write_text('{"model_type": "bert"}')
    assert Workspace.from_config().path == home / "workspaces" / "default"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"workspace_name": ""}', '{"workspace_name": "../up"}'])
def test_config_that_is_broken(here, home, text):
    (here / ".azureml").mkdir()
    (here / ".azureml/config.json").write_text(text)
    with pytest.raises(UserErrorException):
        Workspace.from_config()
    assert not home.exists()


def test_config_of_a_workspace_that_is_gone(here, workspace, tmp_path):
    workspace.write_config()
    config = json.loads((here / ".azureml/config.json").read_text())
    (here / ".azureml/config.json").write_text(json.dumps({**config, "path": str(tmp_path / "gone")}))
    with pytest.raises(WorkspaceException, match="there is no workspace in"):
        Workspace.from_config()
    assert not (tmp_path / "gone").exists()


def test_collections(shared):
    Experiment(shared, "listed")
    assert list(shared.experiments) == ["listed"]
    assert shared.compute_targets["local"].name == "local"
    assert shared.compute_targets() == shared.compute_targets.__call__() or shared.compute_targets().keys() == {"local"}
    assert shared.datastores["workspaceblobstore"].name == shared.get_default_datastore().name
    for nothing in (shared.models, shared.images, shared.webservices):
        assert nothing == {} == nothing()
    # The curated ones are there from the start.
    assert all(name.lower().startswith("azureml-") for name in shared.environments())


def test_default_compute_target(workspace):
    cluster = workspace.get_default_compute_target("CPU")
    assert (cluster.name, cluster.vm_size) == ("cpu-cluster", "STANDARD_DS2_V2")
    assert cluster.scale_settings.maximum_node_count == 2
    cluster.update(max_nodes=3)
    assert workspace.get_default_compute_target("CPU").nodes == 3
    assert workspace.compute_targets.keys() == {"local", "cpu-cluster"}


def test_default_gpu_target_without_gpus(workspace, submit, monkeypatch):
    monkeypatch.setattr("trainmaster.shared.machine.gpus", lambda: ())
    with pytest.warns(UserWarning, match="scripts run on the CPU"):
        cluster = workspace.get_default_compute_target("GPU")
    assert (cluster.name, cluster.vm_size, cluster.nodes) == ("gpu-cluster", "STANDARD_NC6", 2)
    assert ended(submit("print('ran')", compute_target=cluster))["status"] == "Completed"
    # Told once, by what created it.
    assert workspace.get_default_compute_target("GPU").name == "gpu-cluster"


def test_default_compute_target_of_an_unknown_type(shared):
    with pytest.raises(ValueError, match="'CPU' or 'GPU'"):
        shared.get_default_compute_target("TPU")


def test_default_datastore_can_be_another(workspace, tmp_path):
    from trainmaster import Datastore
    from trainmaster.job.errors import DatastoreException

    Datastore.register(workspace, "second", tmp_path / "second")
    workspace.set_default_datastore("second")
    assert Workspace(path=workspace.path).get_default_datastore().name == "second"
    with pytest.raises(DatastoreException, match="third"):
        workspace.set_default_datastore("third")


def test_workspace_of_a_newer_trainmaster(workspace):
    import sqlite3

    end_workspace(workspace.path)
    workspace.connection.close()
    database = workspace.path / "trainmaster.db"
    with sqlite3.connect(database) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()
    before = database.read_bytes()
    with pytest.raises(WorkspaceException, match="newer Trainmaster"):
        Workspace(path=workspace.path).experiments  # noqa: B018
    assert database.read_bytes() == before


@pytest.mark.parametrize("damage", [b"", b"not a database at all, but long enough to look at" * 100])
def test_damaged_database(workspace, damage):
    end_workspace(workspace.path)
    workspace.connection.close()
    database = workspace.path / "trainmaster.db"
    database.write_bytes(damage)
    with pytest.raises(WorkspaceException, match=r"trainmaster\.db"):
        Experiment(Workspace(path=workspace.path), "x")
    assert database.read_bytes() == damage


def test_missing_database_of_a_used_workspace(workspace):
    Experiment(workspace, "x").start_logging(snapshot_directory=None).complete()
    end_workspace(workspace.path)
    workspace.connection.close()
    (workspace.path / "trainmaster.db").unlink()
    with pytest.raises(WorkspaceException, match="database of the workspace is missing"):
        Experiment(workspace, "x")
    assert not (workspace.path / "trainmaster.db").exists()


def test_long_path(tmp_path):
    place = tmp_path / ("long" * 30) / "w"
    ws = Workspace.create("far", path=place, show_output=False)
    assert [each.name for each in Experiment.list(ws)] == []
    from trainmaster.shared.folders import WorkspaceFolder

    socket = WorkspaceFolder(place).socket
    assert socket.is_socket()
    assert not socket.is_relative_to(place)
    assert socket.parent.stat().st_mode & 0o77 == 0
    end_workspace(place)
    assert not socket.exists()


def test_workspace_reached_through_a_link(workspace, tmp_path):
    (tmp_path / "link").symlink_to(workspace.path)
    assert Workspace(path=tmp_path / "link").path == workspace.path


def test_dispatcher_that_cannot_start(workspace, monkeypatch):
    end_workspace(workspace.path)
    workspace.connection.close()
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(ServiceException, match=r"dispatcher\.log"):
        Workspace(path=workspace.path).experiments  # noqa: B018


def test_path_is_a_path(workspace):
    assert isinstance(workspace.path, Path)
    assert workspace.path.is_absolute()
