"""An image that is asked for where no container engine runs. No container is started by these tests."""

from __future__ import annotations

import pytest
from tests.conftest import ended

from trainmaster import Environment, Experiment, ScriptRunConfig
from trainmaster.job.errors import EnvironmentException


@pytest.fixture(autouse=True, scope="module")
def nowhere(tmp_path_factory):
    """No program is found, and so no engine, whatever this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path_factory.mktemp("nothing")))
        yield


def runs(workspace, experiment):
    return list(Experiment(workspace, experiment).get_runs())


@pytest.mark.parametrize("settings", [{"user_managed": True}, {"user_managed": False, "pip_packages": ["numpy"]}])
def test_an_image_is_refused_at_submit(launch, shared, settings):
    with pytest.raises(EnvironmentException) as caught:
        launch("", custom_docker_image="org/image:1", experiment="image", **settings)
    assert "the run uses image 'org/image:1', but no container engine runs" in caught.value.headline
    assert "docker: " in caught.value.cause
    assert "pip_packages" in caught.value.hint
    assert runs(shared, "image") == []


def test_an_environment_with_an_image_is_refused_at_submit(shared, project):
    environment = Environment("mine")
    environment.docker.enabled, environment.docker.base_image = True, "org/image:2"
    config = ScriptRunConfig(str(project(train="")), script="train.py", environment=environment)
    with pytest.raises(EnvironmentException, match="org/image:2"):
        Experiment(shared, "environment").submit(config)
    assert runs(shared, "environment") == []


@pytest.mark.parametrize("settings", [{}, {"use_docker": True}, {"use_docker": True, "shm_size": "4g"}])
def test_docker_alone_neither_fails_nor_warns(launch, settings):
    details = ended(launch("print('ran')", **settings))
    assert details["status"] == "Completed"
    assert details["warnings"] == []
