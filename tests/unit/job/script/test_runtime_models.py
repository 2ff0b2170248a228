"""Where a script finds a model that it knows by name: in a service, or as a path."""

from __future__ import annotations

import pytest

from trainmaster.job.errors import ModelNotFoundException, RunEnvironmentException, WebserviceException
from trainmaster.job.script.models import Model


@pytest.fixture(autouse=True)
def outside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("TRAINMASTER_SOCKET", "AZUREML_MODEL_DIR", "TRAINMASTER_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


def put(folder, name, version, *entries):
    place = folder / name / str(version)
    place.mkdir(parents=True)
    for entry in entries:
        (place / entry).write_text("")


def test_the_highest_version_of_a_service(tmp_path):
    root = tmp_path / "azureml-models"
    for version in (1, 9, 10):
        put(root, "mnist", version, "model.pkl")
    assert Model.get_model_path("mnist") == "azureml-models/mnist/10/model.pkl"
    assert Model.get_model_path("mnist", version=9) == "azureml-models/mnist/9/model.pkl"
    assert Model.get_model_path("mnist", "1") == "azureml-models/mnist/1/model.pkl"
    with pytest.raises(ModelNotFoundException):
        Model.get_model_path("mnist", 4)


@pytest.mark.parametrize("below", ["", "mnist/2"])
def test_a_service_whose_folder_is_elsewhere(tmp_path, monkeypatch, below):
    root = tmp_path / "somewhere" / "azureml-models"
    put(root, "mnist", 2, "model.pkl")
    put(root, "other", 1, "net")
    monkeypatch.setenv("AZUREML_MODEL_DIR", str(root / below))
    assert Model.get_model_path("mnist") == str(root / "mnist" / "2" / "model.pkl")
    assert Model.get_model_path("other") == str(root / "other" / "1" / "net")


def test_a_version_has_one_entry(tmp_path):
    put(tmp_path / "azureml-models", "two", 1, "a", "b")
    put(tmp_path / "azureml-models", "none", 1)
    put(tmp_path / "azureml-models", "cache", 1, "a", ".cache")
    for name in ("two", "none"):
        with pytest.raises(WebserviceException, match="exactly one entry"):
            Model.get_model_path(name)
    assert Model.get_model_path("cache").endswith("/a")


def test_the_last_resort_is_a_path(tmp_path):
    (tmp_path / "model.pkl").write_text("")
    assert Model.get_model_path("model.pkl") == "model.pkl"
    with pytest.raises(ModelNotFoundException, match=r"azureml-models/nothing"):
        Model.get_model_path("nothing")


@pytest.mark.parametrize("name", ["", None, 3])
def test_no_names(name):
    with pytest.raises(WebserviceException):
        Model.get_model_path(name)


def test_what_needs_the_workspace_says_so_outside_of_a_job(tmp_path):
    (tmp_path / "m").write_text("")
    for use in (lambda: Model(None, "m"), lambda: Model.list(None), lambda: Model.register(None, "m", "m")):
        with pytest.raises(RunEnvironmentException, match="TRAINMASTER_SOCKET"):
            use()
    with pytest.raises(WebserviceException, match="cannot be the name"):
        Model.register(None, "m", "a b")
    with pytest.raises(AttributeError):
        _ = Model.nothing
