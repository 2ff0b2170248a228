"""Environments registered in a workspace, with a real dispatcher, and the environment of a run."""

from __future__ import annotations

import os
import sys

import pytest
from tests.chaos.wheels import make_wheel
from tests.conftest import ended, stop_dispatcher

from trainmaster import CondaDependencies, Environment, Estimator, Experiment, ScriptRunConfig, Workspace
from trainmaster.environments.accelerator import on_this_machine
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import WorkspaceFolder


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("tinypackage", "otherpackage"):
        make_wheel(folder, name)
    return folder


@pytest.fixture(autouse=True)
def sources(wheels, monkeypatch):
    """Packages come from the wheels alone."""
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))


def named(name, *packages):
    environment = Environment(name)
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=packages)
    return environment


def test_versions(shared):
    environment = named("versions", "numpy")
    assert environment.register(shared).version == "1"
    assert environment.version == "1"
    assert named("versions", "numpy").register(shared).version == "1"
    environment.python.conda_dependencies.add_pip_package("pandas")
    assert environment.register(shared).version == "2"
    assert Environment.get(shared, "versions").to_spec().pip_packages == ("numpy", "pandas")
    assert Environment.get(shared, "versions", version="1").to_spec().pip_packages == ("numpy",)
    assert Environment.get(shared, "versions", version=1).version == "1"
    listed = Environment.list(shared)
    assert {name: each.version for name, each in listed.items()}["versions"] == "2"
    # As in v1, Azure's curated environments are among them.
    assert listed["AzureML-Scikit-learn-0.20.3"].name == "AzureML-Scikit-learn-0.20.3"
    assert [name for name in listed if name.startswith("AzureML-PyTorch-1.4")] != []
    assert shared.environments["versions"].version == "2"


def test_labels(shared):
    for package in ("numpy", "pandas"):
        named("labels", package).register(shared)
    Environment.label(shared, "labels", "1", ["good", "old"])
    assert Environment.get(shared, "labels", label="good").version == "1"
    Environment.label(shared, "labels", 2, "good")
    assert Environment.get(shared, "labels", label="good").version == "2"
    assert Environment.get(shared, "labels", label="old").version == "1"
    assert Environment.get(shared, "labels", label="Latest").version == "2"


def test_all_of_it_is_kept(shared):
    environment = named("whole", "numpy", "azureml-defaults")
    environment.environment_variables = {"A": "1"}
    environment.python.conda_dependencies.add_channel("conda-forge")
    environment.docker.base_image = "image"
    environment.docker.base_image_registry.password = "secret"
    environment.register(shared)
    found = Environment.get(shared, "whole")
    assert list(found.python.conda_dependencies.pip_packages) == ["numpy", "azureml-defaults"]
    assert (found.environment_variables, found.docker.base_image) == ({"A": "1"}, "image")
    assert found.docker.base_image_registry.password is None
    assert found.clone("mine").register(shared).name == "mine"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ws: Environment.get(ws, "nowhere"), "there is no environment 'nowhere' in this workspace"),
        (lambda ws: Environment.get(ws, "known", version="9"), "'known' of version 9"),
        (lambda ws: Environment.get(ws, "known", label="x"), "'known' with label 'x'"),
        (lambda ws: Environment.get(ws, "known", version="one"), "version must be a number"),
        (lambda ws: Environment.get(ws, "known", version="1", label="x"), "cannot be given together"),
        (lambda ws: Environment.label(ws, "known", "9", "x"), "'known' of version 9"),
        (lambda ws: Environment.label(ws, "known", "1", "latest"), "label 'latest' cannot be set"),
        (lambda ws: Environment.label(ws, "known", "1", 3), "labels must be strings"),
        (lambda ws: Environment("x" * 300).register(ws), "cannot be the name of an environment"),
    ],
)
def test_mistakes(shared, call, message):
    named("known", "numpy").register(shared)
    with pytest.raises(UserErrorException, match=message):
        call(shared)


def test_they_outlive_the_dispatcher(workspace):
    named("mine", "numpy").register(workspace)
    workspace.connection.close()
    stop_dispatcher(WorkspaceFolder(workspace.path))
    assert Environment.get(Workspace(path=workspace.path), "mine").to_spec().pip_packages == ("numpy",)


def test_a_run_in_a_registered_environment(shared, project):
    mine = named("for-runs", "tinypackage")
    mine.environment_variables = {"WORD": "hello"}
    mine.register(shared)
    environment = Environment.get(shared, "for-runs")
    script = "import os, tinypackage\nprint(tinypackage.NAME, os.environ['WORD'])"
    source = str(project(train=script))
    configs = [
        Estimator(source, entry_script="train.py", compute_target="local", environment_definition=environment),
        ScriptRunConfig(source, "train.py", environment=environment),
    ]
    for config in configs:
        run = Experiment(shared, "registered").submit(config)
        assert ended(run)["status"] == "Completed"
        assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"] == "tinypackage hello\n"
        used = run.get_environment()
        assert (used.name, used.version) == ("for-runs", "1")
        assert used.to_spec() == on_this_machine(environment.to_spec())
        assert used.environment_variables == {"WORD": "hello"}
        assert "tinypackage" in used.lock


def test_a_changed_environment_is_no_registered_version(shared, project):
    named("changed", "tinypackage").register(shared)
    environment = Environment.get(shared, "changed")
    environment.python.conda_dependencies.add_pip_package("otherpackage")
    config = ScriptRunConfig(str(project(train="import otherpackage")), "train.py", environment=environment)
    run = Experiment(shared, "registered").submit(config)
    assert ended(run)["status"] == "Completed"
    assert (run.get_environment().name, run.get_environment().version) == ("changed", None)


def test_a_run_in_ones_own_python(shared, project):
    source = str(project(train=""))
    estimator = Estimator(source, entry_script="train.py", compute_target="local", user_managed=True)
    run = Experiment(shared, "registered").submit(estimator)
    ended(run)
    used = run.get_environment()
    assert used.to_spec().interpreter == sys.executable
    assert (used.name, used.lock) == ("default-environment", None)


def test_a_conda_file_of_the_project(shared, project):
    source = project(train="import tinypackage, os; print(os.environ['FROM_FILE'])")
    (source / "conda.yml").write_text("dependencies: [{pip: [tinypackage]}]\nvariables: {FROM_FILE: yes it is}\n")
    estimator = Estimator(
        str(source), entry_script="train.py", compute_target="local", conda_dependencies_file="conda.yml"
    )
    run = Experiment(shared, "registered").submit(estimator)
    assert ended(run)["status"] == "Completed"
    assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"] == "yes it is\n"


def test_building_before_the_first_run(shared, project):
    environment = named("early", "otherpackage", "tinypackage")
    built = environment.build(shared).wait_for_completion()
    assert built.status == "Succeeded" and os.path.isdir(built.folder)
    assert environment.build_local(shared).folder == built.folder
    # In another order it is the same.
    other = named("late", "tinypackage", "otherpackage")
    source = str(project(train="import sys; print(sys.prefix)"))
    run = Experiment(shared, "registered").submit(ScriptRunConfig(source, "train.py", environment=other))
    assert ended(run)["status"] == "Completed"
    assert "azureml-logs/20_image_build_log.txt" not in run.get_file_names()


def test_a_private_wheel(shared, project, tmp_path):
    wheel = make_wheel(tmp_path, "privatepackage")
    address = Environment.add_private_pip_wheel(shared, wheel)
    assert address.startswith("file:///")
    with pytest.raises(UserErrorException, match="already"):
        Environment.add_private_pip_wheel(shared, wheel)
    assert Environment.add_private_pip_wheel(shared, wheel, exist_ok=True) == address
    with pytest.raises(UserErrorException, match="is not a wheel"):
        Environment.add_private_pip_wheel(shared, tmp_path / "no.whl")
    config = ScriptRunConfig(
        str(project(train="import privatepackage")), "train.py", environment=named("private", address)
    )
    run = Experiment(shared, "registered").submit(config)
    assert ended(run)["status"] == "Completed"
