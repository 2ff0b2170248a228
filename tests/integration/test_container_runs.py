"""A run in an image, from submit to its end, with a stand-in for the engine: no container is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.conftest import ended, until

from trainmaster.errors import EnvironmentException

STAND_IN = Path(__file__).with_name("engine_stand_in.py")
LOG = "azureml-logs/70_driver_log.txt"


@pytest.fixture(autouse=True)
def engine(tmp_path, monkeypatch):
    """A program named docker, and nothing else that could be an engine."""
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "docker").write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    (folder / "docker").chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("TRAINMASTER_CONTAINER_ENGINE", "docker")


def test_the_script_runs_and_knows_its_run(submit):
    script = (
        "import os, azureml.core\n"
        "run = azureml.core.Run.get_context()\n"
        "run.log('seen', 1)\n"
        "open('outputs/made', 'w').close()\n"
        "print(os.environ['IMAGE'], os.environ['MINE'], os.environ['HOME'], 'LANG' in os.environ)\n"
    )
    run = submit(script, custom_docker_image="org/image:1", environment_variables={"MINE": "yes"})
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    assert run.get_details_with_logs()["logFiles"][LOG] == "org/image:1 yes /tmp False\n"
    assert run.get_metrics() == {"seen": 1}
    assert "outputs/made" in run.get_file_names()


def test_an_image_needs_no_environment_to_be_built(submit, workspace):
    run = submit("", custom_docker_image="org/image:1", user_managed=False)
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    assert not list((workspace.path / "environments").glob("*.lock"))


def test_packages_are_refused(submit):
    with pytest.raises(EnvironmentException, match="packages cannot be installed into image 'org/image:1': numpy"):
        submit("", custom_docker_image="org/image:1", user_managed=False, pip_packages=["numpy"])


def test_a_failing_script(submit):
    details = ended(submit("raise SystemExit(7)", custom_docker_image="org/image:1"))
    assert details["status"] == "Failed"
    assert "7" in details["error"]["message"]


def test_cancel(submit):
    run = submit("import signal; print('waits', flush=True); signal.pause()", custom_docker_image="org/image:1")
    until(lambda: "waits" in run.get_details_with_logs()["logFiles"].get(LOG, ""))
    run.cancel()
    assert ended(run)["status"] == "Canceled"
