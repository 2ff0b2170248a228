"""v1's rules for estimators, row by row."""

import re
import warnings
from pathlib import Path as FilePath

import pytest
from estimator_doubles import Dataset, HDInsightCompute, Path, Reference, Store, Target

from trainmaster.job.errors import ComputeTargetException, TrainingException, UserErrorException
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.chainer import Chainer
from trainmaster.sdk.estimators.distributed_job import (
    MpiConfiguration,
    ParallelTaskConfiguration,
    PyTorchConfiguration,
    TensorflowConfiguration,
)
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.pytorch import PyTorch
from trainmaster.sdk.estimators.sklearn import SKLearn
from trainmaster.sdk.estimators.tensorflow import TensorFlow

ALL = (Estimator, PyTorch, TensorFlow, Chainer, SKLearn)
DISTRIBUTED = ALL[:4]
ENVIRONMENT = Environment("mine")


class Registry:
    address = "registry.example"


REFUSED = [
    # distributed_backend by class
    (Estimator, {"distributed_backend": "ps"}, TrainingException, "distributed_backend 'ps'.*mpi"),
    (Estimator, {"distributed_backend": "gloo"}, TrainingException, "Supported: mpi"),
    (PyTorch, {"distributed_backend": "ps"}, TrainingException, "mpi, gloo, nccl"),
    (TensorFlow, {"distributed_backend": "nccl"}, TrainingException, "mpi, ps"),
    (Chainer, {"distributed_backend": "ps"}, TrainingException, "Supported: mpi"),
    (Estimator, {"distributed_backend": 3}, UserErrorException, "distributed_backend must be a string"),
    # several nodes or processes need a backend
    *((kind, {"node_count": 2}, TrainingException, "distributed_training or") for kind in DISTRIBUTED),
    *((kind, {"process_count_per_node": 2}, TrainingException, "or distributed_b") for kind in DISTRIBUTED),
    # counts
    (Estimator, {"node_count": 0}, TrainingException, "node_count must be at least 1, not 0"),
    (Estimator, {"process_count_per_node": -1}, TrainingException, "process_count_per_node .* at least 1"),
    (TensorFlow, {"worker_count": 0}, TrainingException, "worker_count .* at least 1"),
    (TensorFlow, {"parameter_server_count": -1}, TrainingException, "parameter_server_count .* at least 0"),
    # targets
    (Estimator, {"compute_target": None}, TrainingException, "compute_target is missing"),
    (Estimator, {"compute_target": HDInsightCompute()}, ComputeTargetException, "HDInsight"),
    (Estimator, {"compute_target": 5}, UserErrorException, "compute_target must be the name"),
    (Estimator, {"compute_target": ""}, UserErrorException, "compute_target"),
    (Estimator, {"compute_target": "a\nb"}, UserErrorException, "one line"),
    (Estimator, {"compute_target": Target}, UserErrorException, "target object"),
    # helper classes by estimator
    (PyTorch, {"distributed_training": ParameterServer()}, TrainingException, "unsupported framework"),
    (PyTorch, {"distributed_training": TensorflowConfiguration()}, TrainingException, "unsupported"),
    (TensorFlow, {"distributed_training": Gloo()}, TrainingException, "unsupported framework"),
    (TensorFlow, {"distributed_training": Nccl()}, TrainingException, "unsupported framework"),
    (TensorFlow, {"distributed_training": PyTorchConfiguration()}, TrainingException, "unsupported"),
    (Chainer, {"distributed_training": Gloo()}, TrainingException, "unsupported framework"),
    (Chainer, {"distributed_training": ParameterServer()}, TrainingException, "unsupported framework"),
    (Estimator, {"distributed_training": "mpi"}, UserErrorException, r"such as Mpi\(\), not 'mpi'"),
    (Estimator, {"distributed_training": Mpi}, UserErrorException, "must be an object"),
    # containers
    (
        Estimator,
        {"use_docker": False, "custom_docker_image": "image"},
        TrainingException,
        "custom_docker_image.*use_docker",
    ),
    (
        Estimator,
        {"custom_docker_base_image": "a", "custom_docker_image": "b"},
        TrainingException,
        "Give custom_docker_image only",
    ),
    (Estimator, {"image_registry_details": "x"}, UserErrorException, "ContainerRegistry"),
    # environment_definition excludes
    *(
        (Estimator, {"environment_definition": ENVIRONMENT, name: value}, TrainingException, name)
        for name, value in {
            "pip_packages": ["numpy"],
            "conda_packages": ["numpy"],
            "pip_requirements_file": "requirements.txt",
            "conda_dependencies_file": "conda.yml",
            "custom_docker_image": "image",
            "image_registry_details": Registry(),
            "use_gpu": True,
            "user_managed": True,
            "shm_size": "4g",
            "environment_variables": {"A": "1"},
        }.items()
    ),
    (Estimator, {"environment_definition": "mine"}, UserErrorException, "must be an Environment"),
    # conda_dependencies_file excludes
    *(
        (kind, {"conda_dependencies_file": "conda.yml", name: value}, TrainingException, name)
        for kind in (Estimator, SKLearn)
        for name, value in {
            "pip_packages": ["numpy"],
            "conda_packages": ["numpy"],
            "pip_requirements_file": "requirements.txt",
        }.items()
    ),
    # user_managed excludes
    *(
        (Estimator, {"user_managed": True, name: value}, UserErrorException, f"user_managed=True.*{name}")
        for name, value in {
            "pip_packages": ["numpy"],
            "conda_packages": ["numpy"],
            "pip_requirements_file": "requirements.txt",
            "conda_dependencies_file": "conda.yml",
        }.items()
    ),
    # files must be in the folder
    (Estimator, {"pip_requirements_file": "no.txt"}, UserErrorException, "inside source_directory"),
    (Estimator, {"pip_requirements_file": "../out.txt"}, UserErrorException, "inside source_directory"),
    (Estimator, {"pip_requirements_file": "/etc/hosts"}, UserErrorException, "inside source_directory"),
    (Estimator, {"conda_dependencies_file": "no.yml"}, UserErrorException, "inside source_directory"),
    # frameworks
    (
        PyTorch,
        {"framework_version": "newest"},
        TrainingException,
        "'newest' is not the number of a release of PyT",
    ),
    (TensorFlow, {"framework_version": ">=2"}, TrainingException, "not the number.*Tested: 1.10, 1.12, 1.13"),
    (Chainer, {"framework_version": "7.x"}, TrainingException, "not the number"),
    (SKLearn, {"framework_version": "1.0 "}, TrainingException, "not the number"),
    # data
    (Estimator, {"inputs": ["folder"]}, UserErrorException, "inputs contains a str, which is not supported"),
    (Estimator, {"inputs": [Path()]}, UserErrorException, "create_data_reference"),
    (Estimator, {"inputs": [Dataset()]}, UserErrorException, "as_mount"),
    (Estimator, {"inputs": Reference()}, UserErrorException, "inputs must be a list"),
    (Estimator, {"script_params": {"--d": Dataset()}}, UserErrorException, "as_mount.*as_named_input"),
    (Estimator, {"resume_from": "folder"}, UserErrorException, "resume_from must be a DataPath, not str"),
    (Estimator, {"resume_from": Reference()}, UserErrorException, "must be a DataPath"),
    (Estimator, {"source_directory_data_store": 7}, UserErrorException, "must be a datastore"),
    # usual mistakes of type
    (Estimator, {"node_count": "2"}, UserErrorException, "node_count must be a whole number, not '2'"),
    (Estimator, {"node_count": 2.0}, UserErrorException, "node_count must be a whole number"),
    (Estimator, {"node_count": True}, UserErrorException, "node_count must be a whole number"),
    (Estimator, {"node_count": None}, UserErrorException, "node_count must be a whole number"),
    (Estimator, {"script_params": ["--lr", 1]}, UserErrorException, "script_params must be a dict"),
    (Estimator, {"pip_packages": "numpy"}, UserErrorException, r"Write pip_packages=\['numpy'\]"),
    (Estimator, {"conda_packages": "numpy"}, UserErrorException, "must be a list of strings"),
    (Estimator, {"pip_packages": [1]}, UserErrorException, "each of pip_packages must be a string"),
    (Estimator, {"pip_packages": ["a\nb"]}, UserErrorException, "one line"),
    (Estimator, {"pip_packages": ["-r other.txt"]}, UserErrorException, "refers to another file"),
    (Estimator, {"pip_packages": ["-e ."]}, UserErrorException, "refers to another file"),
    (Estimator, {"pip_packages": ["./local"]}, UserErrorException, "local path"),
    (Estimator, {"entry_script": "/abs/train.py"}, UserErrorException, "entry_script must be inside"),
    (Estimator, {"entry_script": "../train.py"}, UserErrorException, "entry_script must be inside"),
    (Estimator, {"entry_script": "a/../../train.py"}, UserErrorException, "entry_script must be inside"),
    (Estimator, {"entry_script": "a\nb.py"}, UserErrorException, "one line"),
    (Estimator, {"entry_script": 3}, UserErrorException, "entry_script must be a path"),
    (Estimator, {"use_gpu": "yes"}, UserErrorException, "use_gpu must be True or False"),
    (Estimator, {"user_managed": 1}, UserErrorException, "user_managed must be True or False"),
    (Estimator, {"environment_variables": {"A": 1}}, UserErrorException, "Write '1'"),
    (Estimator, {"environment_variables": {"A=B": "1"}}, UserErrorException, "invalid name of a variable"),
    (Estimator, {"environment_variables": {"": "1"}}, UserErrorException, "invalid name of a variable"),
    (Estimator, {"environment_variables": {"A": "\0"}}, UserErrorException, "NUL"),
    (Estimator, {"environment_variables": ["A=1"]}, UserErrorException, "must be a dict"),
    (Estimator, {"environment_variables": {"TRAINMASTER_TF_CHIEF": "boss"}}, UserErrorException, "'chief' or 'master'"),
    (Estimator, {"max_run_duration_seconds": 0}, UserErrorException, "positive number of seconds"),
    (Estimator, {"max_run_duration_seconds": "1h"}, UserErrorException, "whole number"),
    (SKLearn, {"max_retries": -1}, UserErrorException, "max_retries must be 0 or more, not -1"),
    (Estimator, {"max_retries": 1.5}, UserErrorException, "max_retries must be a whole number"),
    (Estimator, {"max_retries": None}, UserErrorException, "max_retries must be a whole number"),
    (Estimator, {"priority": "high"}, UserErrorException, "priority must be a whole number"),
    (Estimator, {"priority": 101}, UserErrorException, "priority must be from -100 to 100, not 101"),
    (Estimator, {"hang_seconds": 0}, UserErrorException, "hang_seconds must be a positive number"),
    (Estimator, {"hang_seconds": float("nan")}, UserErrorException, "hang_seconds must be a positive number"),
    (Estimator, {"hang_seconds": "60"}, UserErrorException, "hang_seconds must be a number of seconds"),
    (Estimator, {"vm_size": 3}, UserErrorException, "vm_size must be a string"),
    (PyTorch, {"framework_version": 1.4}, UserErrorException, "framework_version must be a string"),
]


@pytest.mark.parametrize(
    ("kind", "settings", "error", "message"),
    REFUSED,
    ids=[f"{n}-{row[0].__name__}-{'-'.join(row[1])}" for n, row in enumerate(REFUSED)],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_an_estimator_refuses(make, kind, settings, error, message):
    with pytest.raises(error) as caught:
        make(kind, **settings)
    assert type(caught.value) is error
    assert re.search(message, caught.value.message, re.DOTALL)
    assert "\n" not in caught.value.headline


@pytest.mark.parametrize("folder", [None, "", 3, b"x", "a\nb"])
def test_a_source_directory_that_is_no_path_is_refused(folder):
    with pytest.raises(UserErrorException, match="source_directory"):
        Estimator(folder, compute_target="local")


def test_parallel_tasks_are_refused():
    with pytest.raises(TrainingException, match="not supported"):
        ParallelTaskConfiguration(worker_count_per_node=2)


ACCEPTED = [
    (Estimator, {"distributed_training": training, "node_count": 2})
    for training in (Mpi(2), ParameterServer(2, 1), Gloo(), Nccl(), MpiConfiguration(), PyTorchConfiguration())
] + [
    (PyTorch, {"distributed_training": Nccl(), "node_count": 4}),
    (TensorFlow, {"distributed_training": TensorflowConfiguration(2, 1), "node_count": 2}),
    (Chainer, {"distributed_training": Mpi(), "node_count": 2}),
    (SKLearn, {"framework_version": "0.20.3"}),
    (Estimator, {"compute_target": Target()}),
    (Estimator, {"inputs": [Reference(), Store()]}),
    (Estimator, {"source_directory_data_store": Store()}),
    (Estimator, {"resume_from": Path()}),
    (Estimator, {"entry_script": None}),
    (Estimator, {"environment_definition": ENVIRONMENT, "pip_packages": [], "environment_variables": None}),
    (Estimator, {"entry_script": FilePath("sub/../train.py")}),
]


@pytest.mark.parametrize(
    ("kind", "settings"), ACCEPTED, ids=[f"{n}-{row[0].__name__}" for n, row in enumerate(ACCEPTED)]
)
def test_what_an_estimator_accepts_without_a_word(make, kind, settings):
    make(kind, **settings)


DEPRECATED = [
    (Estimator, {"distributed_backend": "MPI", "node_count": 2}, "distributed_backend is deprecated"),
    (Estimator, {"process_count_per_node": 2, "distributed_training": Mpi(2)}, "process_count_per_node"),
    (TensorFlow, {"worker_count": 2, "distributed_backend": "ps"}, "worker_count is deprecated"),
    (TensorFlow, {"parameter_server_count": 2, "distributed_backend": "ps"}, "parameter_server_count is"),
    (Estimator, {"use_docker": False}, "use_docker=False is deprecated"),
    (Estimator, {"pip_requirements_file_path": "requirements.txt"}, "use pip_requirements_file instead"),
    (Estimator, {"custom_docker_base_image": "image"}, "use custom_docker_image instead"),
]


@pytest.mark.parametrize(("kind", "settings", "message"), DEPRECATED)
def test_what_is_deprecated_still_works_and_the_warning_points_here(project, monkeypatch, kind, settings, message):
    monkeypatch.chdir(project)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(".", compute_target="local", **settings)
    found = [one for one in caught if re.search(message, str(one.message))]
    assert [(one.category, one.filename) for one in found] == [(DeprecationWarning, __file__)]


def test_the_old_name_of_the_conda_file_is_checked_like_the_new_one(make):
    with (
        pytest.warns(DeprecationWarning, match="use conda_dependencies_file instead"),
        pytest.raises(UserErrorException, match=r"conda_dependencies_file 'no.yml' is not a file inside"),
    ):
        make(Estimator, conda_dependencies_file_path="no.yml")


IGNORED = [
    (TensorFlow, {"worker_count": 2}, "worker_count: ignored"),
    (Estimator, {"distributed_backend": "mpi", "distributed_training": Mpi()}, "distributed_backend is ignored"),
    (Estimator, {"distributed_training": MpiConfiguration(1, node_count=3)}, "node_count=3 .* ignored"),
    (
        Estimator,
        {"process_count_per_node": 3, "distributed_training": Mpi(2)},
        "process_count_per_node is ignored",
    ),
]


@pytest.mark.parametrize(("kind", "settings", "message"), IGNORED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_ignored_is_said(make, kind, settings, message):
    with pytest.warns(UserWarning, match=message):
        make(kind, **settings)


def test_vm_size_without_a_target_means_a_cluster_for_the_run(make):
    spec = make(Estimator, compute_target=None, vm_size="STANDARD_D2", vm_priority="lowpriority").compile({})
    assert (spec.target, spec.vm_size, spec.vm_priority) == ("amlcompute", "STANDARD_D2", "lowpriority")


def test_several_nodes_on_the_local_target_are_not_refused(make):
    assert make(Estimator, node_count=3, distributed_training=Mpi()).compile({}).node_count == 3
