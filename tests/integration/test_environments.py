"""Environments built with uv, from wheels made on the spot: nobody is asked over the network."""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from tests.chaos.wheels import make_wheel
from tests.conftest import ended, until

from trainmaster import CondaDependencies, Environment, Experiment, ScriptRunConfig
from trainmaster.environments.pythons import all_pythons

BUILD_LOG = "azureml-logs/20_image_build_log.txt"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("tinypackage", "otherpackage", "lastpackage"):
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


def prefixes(workspace):
    folder = workspace.path / "environments"
    return [p for p in folder.iterdir() if p.is_dir() and not p.is_symlink()] if folder.is_dir() else []


def text(run, name="azureml-logs/70_driver_log.txt"):
    return run.get_details_with_logs()["logFiles"][name]


def test_built_once_and_used_again(launch, shared):
    script = "import sys, tinypackage\nprint(tinypackage.NAME, sys.prefix)\nimport azureml.core"
    first = launch(script, pip_packages=["tinypackage"], user_managed=False)
    assert ended(first)["status"] == "Completed"
    name, prefix = text(first).split()
    assert name == "tinypackage"
    assert [str(path) for path in prefixes(shared)] == [prefix]
    assert "tinypackage" in text(first, BUILD_LOG)
    before = os.stat(f"{prefix}/environment.lock").st_mtime_ns
    second = launch(script, pip_packages=["tinypackage"], user_managed=False)
    assert ended(second)["status"] == "Completed"
    assert text(second) == text(first)
    assert BUILD_LOG not in second.get_file_names()
    assert os.stat(f"{prefix}/environment.lock").st_mtime_ns == before


def test_programs_of_the_environment_are_found_first(launch):
    script = "import shutil, os\nprint(shutil.which('python') == os.environ['VIRTUAL_ENV'] + '/bin/python')"
    run = launch(script, pip_packages=["tinypackage"], user_managed=False)
    ended(run)
    assert text(run) == "True\n"


def test_two_runs_at_once_build_once(launch, shared):
    known = set(prefixes(shared))
    runs = [launch("import otherpackage", pip_packages=["otherpackage"], user_managed=False) for _ in range(2)]
    assert [ended(run)["status"] for run in runs] == ["Completed"] * 2
    assert len(set(prefixes(shared)) - known) == 1
    logs = [text(run, BUILD_LOG) for run in runs if BUILD_LOG in run.get_file_names()]
    assert sum("is ready after" in log for log in logs) == 1


def test_failed_build(launch, shared):
    known = set(prefixes(shared))
    run = launch("", pip_packages=["no-such-package-anywhere"], user_managed=False)
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "EnvironmentError"
    assert "no-such-package-anywhere was not found" in details["error"]["message"]
    assert "Traceback" not in details["error"]["message"]
    assert "no-such-package-anywhere" in text(run, BUILD_LOG)
    assert set(prefixes(shared)) == known
    assert details["startTimeUtc"] is None


def test_failed_build_can_be_mended(launch, wheels):
    assert ended(launch("", pip_packages=["comeslater"], user_managed=False))["status"] == "Failed"
    make_wheel(wheels, "comeslater")
    run = launch("import comeslater", pip_packages=["comeslater"], user_managed=False)
    assert ended(run)["status"] == "Completed"


def test_no_packages_is_a_clean_environment(launch):
    run = launch("import importlib.util as u\nprint(u.find_spec('sqlalchemy'), u.find_spec('pip'))", user_managed=False)
    assert ended(run)["status"] == "Completed"
    assert text(run) == "None None\n"


def test_own_python(launch):
    run = launch("import sys\nprint(sys.executable)")
    ended(run)
    assert text(run).strip() == sys.executable


def submitted(shared, project, environment, script="import sys; print('%d.%d' % sys.version_info[:2])"):
    config = ScriptRunConfig(
        str(project(train=script)), script="train.py", compute_target="local", environment=environment
    )
    return Experiment(shared, "spine").submit(config)


def test_own_python_that_is_missing(shared, project):
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = "/no/such/python"
    details = ended(submitted(shared, project, environment))
    assert details["status"] == "Failed"
    assert "/no/such/python" in details["error"]["message"]


def test_own_python_by_name_that_is_missing(shared, project):
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = "no-such-python"
    details = ended(submitted(shared, project, environment))
    assert details["status"] == "Failed"
    assert "no-such-python" in details["error"]["message"]


OTHERS = sorted(set(all_pythons()) - {f"{sys.version_info.major}.{sys.version_info.minor}"})


@pytest.mark.skipif(not OTHERS, reason="only one Python is on this machine")
def test_another_python(shared, project):
    version = OTHERS[-1]
    environment = Environment("other")
    environment.python.conda_dependencies = CondaDependencies.create(
        pip_packages=["tinypackage"], python_version=version
    )
    run = submitted(shared, project, environment, "import sys, tinypackage; print('%d.%d' % sys.version_info[:2])")
    assert ended(run)["status"] == "Completed"
    assert text(run) == f"{version}\n"


def test_python_that_is_not_there(shared, project):
    environment = Environment("other")
    environment.python.conda_dependencies = CondaDependencies.create(python_version="3.99")
    details = ended(submitted(shared, project, environment))
    assert details["status"] == "Failed"
    assert "this machine has no Python 3.99" in details["error"]["message"]
    assert "python_version" in details["error"]["message"]


def test_a_checked_in_conda_file_names_a_python_that_is_not_there(shared, project, tmp_path):
    file = tmp_path / "myenv.yml"
    file.write_text("dependencies:\n- python=3.5.2\n- pip:\n  - tinypackage\n")
    nearest = next(iter(all_pythons()))
    environment = Environment.from_conda_specification("myenv", file)
    for _ in range(2):
        run = submitted(shared, project, environment)
        details = ended(run)
        assert (details["status"], text(run)) == ("Completed", f"{nearest}\n")
        (warning,) = [each["message"] for each in details["warnings"]]
        assert warning.startswith(f"Python {nearest} is used: this machine has no Python 3.5")


def test_environment_that_lost_its_python_is_built_again(launch, shared):
    known = set(prefixes(shared))
    script = "import lastpackage"
    assert ended(launch(script, pip_packages=["lastpackage"], user_managed=False))["status"] == "Completed"
    (prefix,) = set(prefixes(shared)) - known
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").symlink_to("/no/such/python")
    run = launch(script, pip_packages=["lastpackage"], user_managed=False)
    assert ended(run)["status"] == "Completed"
    assert "building it again" in text(run, BUILD_LOG)


def test_half_built_environment_is_never_used(launch, shared):
    known = set(prefixes(shared))
    assert ended(launch("", pip_packages=["tinypackage", "otherpackage"], user_managed=False))["status"] == "Completed"
    (prefix,) = set(prefixes(shared)) - known
    # What a builder leaves that was killed on the way.
    shutil.move(prefix, prefix.with_name(f".building-{prefix.stem}-12345"))
    run = launch("import otherpackage", pip_packages=["tinypackage", "otherpackage"], user_managed=False)
    assert ended(run)["status"] == "Completed"
    assert BUILD_LOG in run.get_file_names()
    assert not list(prefix.parent.glob(".building-*"))


def test_cancel_while_building(launch, shared, tmp_path, monkeypatch):
    # pip's settings may be read from anywhere: here from a pipe into which nobody writes.
    os.mkfifo(tmp_path / "pip.conf")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    known = set(prefixes(shared))
    run = launch("", pip_packages=["lastpackage", "tinypackage"], user_managed=False)
    until(lambda: run.get_detailed_status()["details"].startswith("building environment"))
    assert run.get_status() == "Preparing"
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert set(prefixes(shared)) == known


def test_build_is_streamed(launch, capsys):
    run = launch("print('and runs')", pip_packages=["tinypackage", "lastpackage"], user_managed=False)
    run.wait_for_completion(show_output=True)
    shown = capsys.readouterr().out
    assert shown.index(f"Streaming {BUILD_LOG}") < shown.index("is ready after") < shown.index("and runs")
