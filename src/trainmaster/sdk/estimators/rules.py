"""What an estimator refuses or warns of: v1's rules, each a function of the settings.

One rule is left out: v1 refused several nodes on all targets but managed clusters. Here every target may have several
nodes, and submit checks whether the request fits the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmaster.environments.requirements_file import check_requirement
from trainmaster.job.errors import TrainingException, UserErrorException
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators import data, values
from trainmaster.sdk.estimators.arguments import from_params
from trainmaster.sdk.estimators.compute_target import target_name
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.environment_variables import environment_variables
from trainmaster.sdk.estimators.settings import Settings


@dataclass(frozen=True)
class Kind:
    """The facts about an estimator class that the rules need."""

    name: str
    backends: tuple[str, ...] = ()
    """The accepted values of `distributed_backend`."""
    training: tuple[type, ...] = ()
    """The accepted classes of `distributed_training`."""


MPI = (Mpi, MpiConfiguration)
PARAMETER_SERVER = (ParameterServer, TensorflowConfiguration)
TORCH = (Gloo, Nccl, PyTorchConfiguration)
_TRAINING = (*MPI, *PARAMETER_SERVER, *TORCH)

_PACKAGES = (
    "pip_packages",
    "conda_packages",
    "pip_requirements_file",
    "conda_dependencies_file",
)
_OF_ENVIRONMENT = (
    *_PACKAGES,
    "custom_docker_image",
    "image_registry_details",
    "use_gpu",
    "user_managed",
    "shm_size",
    "environment_variables",
)
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "vm_size": values.optional_text,
    "vm_priority": values.optional_text,
    "entry_script": lambda name, value: None if value is None else values.relative_path(name, value),
    "entry_module": values.optional_text,
    "script_params": lambda name, value: from_params(values.mapping(name, value)),
    "node_count": values.count,
    "process_count_per_node": values.count,
    "worker_count": values.count,
    "parameter_server_count": values.server_count,
    "distributed_backend": values.optional_text,
    "use_gpu": values.flag,
    "use_docker": values.flag,
    "custom_docker_image": values.optional_text,
    "user_managed": values.flag,
    "conda_packages": values.packages,
    "pip_packages": values.packages,
    "conda_dependencies_file": values.optional_text,
    "pip_requirements_file": values.optional_text,
    "environment_variables": environment_variables,
    "shm_size": values.optional_text,
    "max_run_duration_seconds": values.seconds,
    "max_retries": values.retries,
    "hang_seconds": values.silence,
    "priority": values.priority,
    "inputs": data.inputs_of,
    "framework_version": values.optional_text,
}


def check(kind: Kind, settings: Settings) -> None:
    """Refuses settings that cannot be run."""
    for name, check_value in _CHECKS.items():
        check_value(name, getattr(settings, name))
    _check_distribution(kind, settings)
    _check_target(settings)
    _check_docker(settings)
    _check_packages(settings)
    if settings.resume_from is not None:
        data.check_resume_from(settings.resume_from)
    if settings.source_directory_data_store is not None:
        check_data_store(settings.source_directory_data_store)


def check_parameter(parameter: str, name: str, value: Any) -> None:
    """Refuses a value that a parameter cannot have, by the name that the user knows it by."""
    if parameter in _CHECKS:
        _CHECKS[parameter](name, value)


def check_data_store(value: Any) -> None:
    """Refuses a value that is not a datastore or the name of one."""
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if isinstance(value, type) or not isinstance(name, str):
        raise UserErrorException(f"source_directory_data_store must be a datastore, not {value!r}")


def _check_distribution(kind: Kind, settings: Settings) -> None:
    backend, training = settings.distributed_backend, settings.distributed_training
    if backend is not None and backend.lower() not in kind.backends:
        raise TrainingException(
            f"distributed_backend {backend!r} is not supported by {kind.name}",
            hint=f"Supported: {', '.join(kind.backends)}.",
        )
    if training is not None:
        _check_training(kind, training)
    distributed = settings.node_count > 1 or settings.process_count_per_node > 1
    if distributed and backend is None and training is None:
        raise TrainingException(
            "node_count or process_count_per_node greater than 1 needs distributed_training or distributed_backend",
            hint="Write distributed_training=Mpi(), for instance.",
        )


def _check_training(kind: Kind, training: Any) -> None:
    if not isinstance(training, _TRAINING):
        given = repr(training) if isinstance(training, str | type) else type(training).__name__
        raise UserErrorException(
            f"distributed_training must be an object such as Mpi(), not {given}",
            hint=f"Supported by {kind.name}: {_training_names(kind)}.",
        )
    if not isinstance(training, kind.training):
        raise TrainingException(
            f"distributed_training {type(training).__name__} has an unsupported framework for {kind.name}",
            hint=f"Supported: {_training_names(kind)}.",
        )


def _training_names(kind: Kind) -> str:
    return ", ".join(f"{allowed.__name__}()" for allowed in kind.training)


def _check_target(settings: Settings) -> None:
    if settings.compute_target is None and settings.vm_size is None:
        raise TrainingException(
            "compute_target is missing", hint="Write compute_target='local', or give another target."
        )
    if settings.compute_target is not None:
        target_name("compute_target", settings.compute_target)


def _check_docker(settings: Settings) -> None:
    registry = settings.image_registry_details
    if registry is not None and not hasattr(registry, "address"):
        raise UserErrorException(f"image_registry_details must be a ContainerRegistry, not {type(registry).__name__}")
    if settings.custom_docker_image and not settings.use_docker:
        raise TrainingException(
            "custom_docker_image cannot be given together with use_docker=False",
            hint="Leave one of them out.",
        )


def _check_packages(settings: Settings) -> None:
    environment = settings.environment_definition
    if environment is not None:
        if not isinstance(environment, Environment):
            raise UserErrorException(f"environment_definition must be an Environment, not {type(environment).__name__}")
        _refuse_together("environment_definition", _OF_ENVIRONMENT, settings, TrainingException)
    if settings.conda_dependencies_file:
        others = ("pip_packages", "pip_requirements_file", "conda_packages")
        _refuse_together("conda_dependencies_file", others, settings, TrainingException)
    if settings.user_managed:
        _refuse_together("user_managed=True", _PACKAGES, settings, UserErrorException)
    for package in settings.pip_packages or ():
        check_requirement("one of pip_packages", package)


def _refuse_together(
    one: str,
    others: tuple[str, ...],
    settings: Settings,
    error: type[TrainingException] | type[UserErrorException],
) -> None:
    given = [name for name in others if getattr(settings, name)]
    if given:
        raise error(f"{one} cannot be given together with {', '.join(given)}", hint="Leave one of them out.")
