"""The parameters of the estimators: names and types by class, and all defaults."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar

from trainmaster.sdk.environment.definition import ContainerRegistry, Environment
from trainmaster.shared.spelling import make_keyword_error

C = TypeVar("C", bound=type)


class SKLearnSettings(TypedDict, total=False):
    """The parameters of every estimator besides `source_directory`."""

    compute_target: Any
    vm_size: str | None
    vm_priority: str | None
    entry_script: str | None
    script_params: Mapping[Any, Any] | None
    use_docker: bool
    custom_docker_image: str | None
    image_registry_details: ContainerRegistry | None
    user_managed: bool
    conda_packages: Sequence[str] | None
    pip_packages: Sequence[str] | None
    conda_dependencies_file_path: str | None
    pip_requirements_file_path: str | None
    conda_dependencies_file: str | None
    pip_requirements_file: str | None
    environment_variables: Mapping[str, str] | None
    environment_definition: Environment | None
    inputs: Sequence[Any] | None
    shm_size: str | None
    resume_from: Any
    max_run_duration_seconds: int | None
    max_retries: int
    hang_seconds: float | None
    entry_module: str | None
    priority: int | None
    framework_version: str | None


class EstimatorSettings(TypedDict, total=False):
    """The parameters of `Estimator`: all but those of frameworks."""

    compute_target: Any
    vm_size: str | None
    vm_priority: str | None
    entry_script: str | None
    script_params: Mapping[Any, Any] | None
    node_count: int
    process_count_per_node: int
    distributed_backend: str | None
    distributed_training: Any
    use_gpu: bool
    use_docker: bool
    custom_docker_base_image: str | None
    custom_docker_image: str | None
    image_registry_details: ContainerRegistry | None
    user_managed: bool
    conda_packages: Sequence[str] | None
    pip_packages: Sequence[str] | None
    conda_dependencies_file_path: str | None
    pip_requirements_file_path: str | None
    conda_dependencies_file: str | None
    pip_requirements_file: str | None
    environment_variables: Mapping[str, str] | None
    environment_definition: Environment | None
    inputs: Sequence[Any] | None
    source_directory_data_store: Any
    shm_size: str | None
    resume_from: Any
    max_run_duration_seconds: int | None
    max_retries: int
    hang_seconds: float | None
    entry_module: str | None
    priority: int | None


class FrameworkSettings(EstimatorSettings, total=False):
    """The parameters of `PyTorch` and `Chainer`."""

    framework_version: str | None


class TensorFlowSettings(FrameworkSettings, total=False):
    """The parameters of `TensorFlow`."""

    worker_count: int
    parameter_server_count: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All parameters of all estimators, with v1's defaults. A class without a parameter uses its default."""

    compute_target: Any = None
    vm_size: Any = None
    vm_priority: Any = None
    entry_script: Any = None
    script_params: Any = None
    node_count: Any = 1
    process_count_per_node: Any = 1
    worker_count: Any = 1
    parameter_server_count: Any = 1
    distributed_backend: Any = None
    distributed_training: Any = None
    use_gpu: Any = False
    use_docker: Any = True
    custom_docker_base_image: Any = None
    custom_docker_image: Any = None
    image_registry_details: Any = None
    user_managed: Any = False
    conda_packages: Any = None
    pip_packages: Any = None
    conda_dependencies_file_path: Any = None
    pip_requirements_file_path: Any = None
    conda_dependencies_file: Any = None
    pip_requirements_file: Any = None
    environment_variables: Any = None
    environment_definition: Any = None
    inputs: Any = None
    source_directory_data_store: Any = None
    shm_size: Any = None
    resume_from: Any = None
    max_run_duration_seconds: Any = None
    framework_version: Any = None
    # Not in v1, so they come last.
    max_retries: Any = 0
    hang_seconds: Any = None
    entry_module: Any = None
    priority: Any = None


# The names that ScriptRunConfig, Environment and the command line use.
_SYNONYMS = {
    "arguments": "script_params",
    "args": "script_params",
    "script": "entry_script",
    "module": "entry_module",
    "target": "compute_target",
    "environment": "environment_definition",
    "env": "environment_variables",
    "pip": "pip_packages",
    "packages": "pip_packages",
    "requirements": "pip_requirements_file",
    "conda_file": "conda_dependencies_file",
    "distributed_job_config": "distributed_training",
}
_DEFAULTS = {field.name: field.default for field in fields(Settings)}


def read(owner: Any, given: Mapping[str, Any]) -> Settings:
    """`given` as Settings. A parameter that `owner` does not have is a TypeError, as for any function."""
    for name in given:
        if name not in owner.PARAMETERS:
            raise make_keyword_error(owner.__name__, name, owner.PARAMETERS, _SYNONYMS)
    return Settings(**given)


def with_signature(settings: type) -> Any:
    """Gives a class the full signature instead of `**settings`, for help() and notebooks."""

    def decorate(owner: C) -> C:
        first = inspect.Parameter("source_directory", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        others = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[name])
            for name in _DEFAULTS
            if name in settings.__annotations__
        ]
        owner.PARAMETERS = frozenset(settings.__annotations__)  # type: ignore[attr-defined]
        owner.__signature__ = inspect.Signature([first, *others])  # type: ignore[attr-defined]
        return owner

    return decorate
