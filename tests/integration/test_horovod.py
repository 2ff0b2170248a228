"""Horovod for real: compiled for the environment of a run, and two ranks that train together under its own mpirun.

What is compiled is kept in the user's cache folder (`TRAINMASTER_CACHE`): minutes on a new machine, seconds after.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ended

from trainmaster import Experiment, PyTorch, TensorFlow
from trainmaster.environments.lock import LOCK_NAME
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.errors import EnvironmentException

SCRIPTS = Path(__file__).parent / "horovod_scripts"
BUILD_LOG = "azureml-logs/20_image_build_log.txt"

pytestmark = pytest.mark.timeout(1800)
needs_python_3_7 = pytest.mark.skipif("3.7" not in all_pythons(), reason="there is no Python 3.7 on this machine")


@pytest.fixture
def trained(frameworks, tmp_path):
    """Runs one of the scripts with two ranks; returns what rank 0 saw, and the build's log."""

    def train(estimator, script, *packages, **settings):
        source = tmp_path / "source"
        source.mkdir(exist_ok=True)
        shutil.copy(SCRIPTS / "start.py", source)
        shutil.copy(SCRIPTS / script, source)
        run = Experiment(frameworks, "horovod").submit(
            estimator(
                str(source), entry_script="start.py", script_params={script: ""}, compute_target="local",
                pip_packages=["horovod", *packages], **settings,
            )
        )  # fmt: skip
        details = ended(run)
        logs = run.get_details_with_logs()["logFiles"]
        assert details["status"] == "Completed", "\n".join(logs.values())
        run.download_file("outputs/seen.json", str(tmp_path / "seen.json"))
        assert "\nhorovod==" in run.get_environment().lock
        return json.loads((tmp_path / "seen.json").read_text()), logs[BUILD_LOG]

    return train


def test_torch(trained):
    seen, log = trained(PyTorch, "train_torch.py")
    assert seen == {
        "framework": "2.13.0+cpu",
        "horovod": "0.28.1",
        "size": 2,
        "began_alike": False,
        "local_gradients_differ": True,
        "gradients_are_the_mean": True,
        "weights_are_identical": True,
        "learned": True,
    }
    assert "Horovod 0.28.1 for torch 2.13.0+cpu" in log
    # Another environment with the same framework does not compile again.
    again, log = trained(PyTorch, "train_torch.py", "six")
    assert again == seen
    assert "Horovod 0.28.1 for torch 2.13.0+cpu: using the wheel compiled earlier on this machine" in log


def test_tensorflow(trained):
    seen, log = trained(TensorFlow, "train_tensorflow.py")
    fitted = {"weights_are_identical": True, "losses_are_averaged": True, "learned": True, "rate": 0.02}
    assert seen == {
        "framework": "2.21.0",
        "horovod": "0.28.1",
        "size": 2,
        "began_alike": False,
        "local_gradients_differ": True,
        "gradients_are_the_mean": True,
        "sgd": fitted,
        "adam": fitted,
    }
    assert "Horovod 0.28.1 for tensorflow 2.21.0" in log


@needs_python_3_7
@pytest.mark.parametrize(
    ("estimator", "version", "script", "framework", "horovod"),
    [
        (PyTorch, "1.4", "train_torch.py", "1.4.0", "0.18.1"),
        (TensorFlow, "1.13", "train_tensorflow1.py", "1.13.1", "0.16.1"),
    ],
)
def test_releases_of_v1s_time(trained, estimator, version, script, framework, horovod):
    seen, _ = trained(estimator, script, framework_version=version)
    assert seen == {
        "framework": framework,
        "horovod": horovod,
        "size": 2,
        "began_alike": False,
        "local_gradients_differ": True,
        "gradients_are_the_mean": True,
        "weights_are_identical": True,
        "learned": True,
    }


def test_refused_before_it_is_queued(frameworks, project):
    estimator = PyTorch(
        str(project(train="")), entry_script="train.py", compute_target="local",
        pip_packages=["torch==2.13.0", "horovod==0.18.1"],
    )  # fmt: skip
    with pytest.raises(EnvironmentException) as refused:
        Experiment(frameworks, "horovod").submit(estimator)
    assert "Horovod 0.18.1 does not build with torch 2.13.0" in refused.value.message
    assert "Horovod 0.28.1" in refused.value.message and "Gloo()" in refused.value.message


def test_built_ahead_it_is_the_environment_of_the_run(frameworks, project, tmp_path):
    folder = project(train="import horovod.torch as hvd; hvd.init(); print('ranks:', hvd.size())")
    words = ["--pip", "torch==2.13.0", "--pip", "horovod", "--pip", "numpy", "--workspace", str(frameworks.path)]
    command = [sys.executable, "-m", "trainmaster.cli"]
    built = subprocess.run([*command, "env", "build", *words], capture_output=True, text=True, check=True)
    run = subprocess.run(
        [*command, "submit", str(folder), "train.py", "--wait", *words], capture_output=True, text=True, check=True
    )
    assert run.stdout == "ranks: 1\n"
    assert "building environment" not in run.stderr
    assert "\nhorovod==0.28.1" in Path(frameworks.path, "environments", built.stdout.strip(), LOCK_NAME).read_text()
