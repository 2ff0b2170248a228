"""The parameters, defaults and members that programs written for v1 rely on."""

import inspect
import subprocess
import sys
import typing

import pytest

from trainmaster.sdk.estimators.chainer import Chainer
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.pytorch import PyTorch
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.sdk.estimators.settings import FrameworkSettings, Settings, TensorFlowSettings
from trainmaster.sdk.estimators.sklearn import SKLearn
from trainmaster.sdk.estimators.tensorflow import TensorFlow
from trainmaster.sdk.sweeps.config import HyperDriveConfig

EVERY = {
    "compute_target": None,
    "vm_size": None,
    "vm_priority": None,
    "entry_script": None,
    "script_params": None,
    "use_docker": True,
    "custom_docker_image": None,
    "image_registry_details": None,
    "user_managed": False,
    "conda_packages": None,
    "pip_packages": None,
    "conda_dependencies_file_path": None,
    "pip_requirements_file_path": None,
    "conda_dependencies_file": None,
    "pip_requirements_file": None,
    "environment_variables": None,
    "environment_definition": None,
    "inputs": None,
    "shm_size": None,
    "resume_from": None,
    "max_run_duration_seconds": None,
}
DISTRIBUTED = {
    "node_count": 1,
    "process_count_per_node": 1,
    "distributed_backend": None,
    "distributed_training": None,
    "use_gpu": False,
    "custom_docker_base_image": None,
    "source_directory_data_store": None,
}
OURS = {"max_retries": 0, "hang_seconds": None, "entry_module": None, "priority": None}
FRAMEWORK = {"framework_version": None}
SERVERS = {"worker_count": 1, "parameter_server_count": 1}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Estimator, EVERY | DISTRIBUTED),
        (PyTorch, EVERY | DISTRIBUTED | FRAMEWORK),
        (TensorFlow, EVERY | DISTRIBUTED | FRAMEWORK | SERVERS),
        (Chainer, EVERY | DISTRIBUTED | FRAMEWORK),
        (SKLearn, EVERY | FRAMEWORK),
    ],
)
def test_signature(kind, expected):
    first, *others = inspect.signature(kind).parameters.values()
    assert (first.name, first.default) == ("source_directory", inspect.Parameter.empty)
    assert {other.name: other.default for other in others} == expected | OURS
    assert [other.name for other in others][-len(OURS) :] == list(OURS)
    assert {other.kind for other in others} == {inspect.Parameter.KEYWORD_ONLY}


def test_what_type_checkers_see_is_what_there_is():
    assert set(typing.get_type_hints(TensorFlowSettings)) == set(Settings.__dataclass_fields__)
    assert "worker_count" not in typing.get_type_hints(FrameworkSettings)


def test_an_unknown_parameter_is_a_type_error(project):
    with pytest.raises(TypeError, match=r"SKLearn\(\) got an unexpected keyword argument 'node_count'"):
        SKLearn(project, compute_target="local", node_count=2)
    with pytest.raises(TypeError, match="positional"):
        Estimator(project, "local")


@pytest.mark.parametrize(
    ("kind", "name", "default", "versions"),
    [
        (PyTorch, "PyTorch", "2.13", ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "2.13"]),
        (TensorFlow, "TensorFlow", "2.21", ["1.10", "1.12", "1.13", "2.0", "2.1", "2.2", "2.3", "2.15", "2.21"]),
        (Chainer, "Chainer", "7.0.0", ["5.1.0", "7.0.0"]),
        (SKLearn, "SKLearn", "1.9.1", ["0.20.3", "1.9.1"]),
    ],
)
def test_framework_releases(make, kind, name, default, versions):
    assert (kind.FRAMEWORK_NAME, kind.DEFAULT_VERSION, kind.get_supported_versions()) == (name, default, versions)
    assert make(kind).framework_version == default
    assert make(kind, framework_version=versions[0]).framework_version == versions[0]


def test_helper_classes_name_themselves():
    assert [str(helper) for helper in (Mpi(), ParameterServer(), Gloo(), Nccl())] == ["mpi", "ps", "gloo", "nccl"]


def test_subclasses_of_users_keep_the_parameters(project):
    class Mine(Estimator):
        pass

    assert Mine(project, compute_target="local").source_directory == str(project)


def test_the_import_is_light():
    code = (
        "import sys; from trainmaster import Estimator, ScriptRunConfig; "
        "print([m for m in ('sqlalchemy', 'fsspec', 'yaml', 'asyncio', 'subprocess') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("make", "given", "meant"),
    [
        (Estimator, "pip_package", "pip_packages"),
        (Estimator, "arguments", "script_params"),
        (Estimator, "script", "entry_script"),
        (ScriptRunConfig, "entry_script", "script"),
        (ScriptRunConfig, "comand", "command"),
        (HyperDriveConfig, "max_total_run", "max_total_runs"),
        (HyperDriveConfig, "metric", "primary_metric_name"),
    ],
)
def test_the_keyword_that_was_meant_is_named(make, given, meant):
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{given}'\. Did you mean '{meant}'\?"):
        make(**{"source_directory": "."} if make is not HyperDriveConfig else {}, **{given: 1})


def test_a_keyword_that_nobody_meant():
    with pytest.raises(TypeError, match=r"ScriptRunConfig\(\) got an unexpected keyword argument 'zzz'$"):
        ScriptRunConfig(".", zzz=1)
