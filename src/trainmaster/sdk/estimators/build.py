"""From checked settings to the run configuration that an estimator shows and compiles."""

from __future__ import annotations

from typing import Any

from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators import values
from trainmaster.sdk.estimators.arguments import flat
from trainmaster.sdk.estimators.compute_target import target_name
from trainmaster.sdk.estimators.distributed_job import TensorflowConfiguration
from trainmaster.sdk.estimators.distributed_training import Gloo, Nccl
from trainmaster.sdk.estimators.distribution import record
from trainmaster.sdk.estimators.requirements import merge, read_conda, read_requirements
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.settings import Settings
from trainmaster.shared.job_spec import THROW_AWAY


def run_configuration(source_directory: str, settings: Settings) -> RunConfiguration:
    """The RunConfiguration with these settings."""
    config = RunConfiguration()
    if settings.compute_target is not None:
        config.target = target_name("compute_target", settings.compute_target)
    else:
        config.target = THROW_AWAY
    if settings.entry_script is not None:
        config.script = values.relative_path("entry_script", settings.entry_script)
    config.module = settings.entry_module
    config.arguments = flat(values.mapping("script_params", settings.script_params))
    config.max_run_duration_seconds = values.seconds("max_run_duration_seconds", settings.max_run_duration_seconds)
    config.max_retries = values.retries("max_retries", settings.max_retries)
    config.hang_seconds = values.silence("hang_seconds", settings.hang_seconds)
    config.priority = settings.priority
    config.amlcompute.vm_size, config.amlcompute.vm_priority = settings.vm_size, settings.vm_priority
    config.source_directory_data_store = _name(settings.source_directory_data_store)
    _distribute(config, settings)
    config.environment = settings.environment_definition or _environment(source_directory, settings)
    config.environment_variables = values.mapping("environment_variables", settings.environment_variables)
    return config


def _distribute(config: RunConfiguration, settings: Settings) -> None:
    config.node_count = values.count("node_count", settings.node_count)
    config.mpi.process_count_per_node = values.count("process_count_per_node", settings.process_count_per_node)
    if settings.distributed_training is not None:
        record(config, settings.distributed_training)
        return
    match str(settings.distributed_backend).lower():
        case "mpi":
            # v1 recorded this name although it documented Open MPI, which is what runs.
            config.framework, config.communicator = "Python", "IntelMpi"
        case "ps":
            record(config, TensorflowConfiguration(settings.worker_count, settings.parameter_server_count))
        case "gloo":
            record(config, Gloo())
        case "nccl":
            record(config, Nccl())


def _environment(source_directory: str, settings: Settings) -> Environment:
    environment = Environment("default-environment")
    environment.python.user_managed_dependencies = settings.user_managed
    if settings.conda_dependencies_file:
        environment.python.conda_dependencies = read_conda(source_directory, settings.conda_dependencies_file)
    else:
        _add_packages(environment.python.conda_dependencies, source_directory, settings)
    docker = environment.docker
    docker.gpu_support = settings.use_gpu
    if settings.custom_docker_image:
        docker.enabled, docker.base_image = True, settings.custom_docker_image
    if settings.image_registry_details is not None:
        docker.base_image_registry = settings.image_registry_details
    docker.shm_size = settings.shm_size or docker.shm_size
    return environment


def _add_packages(packages: CondaDependencies, source_directory: str, settings: Settings) -> None:
    for package in settings.conda_packages or ():
        packages.add_conda_package(package)
    from_file: list[str] = []
    if settings.pip_requirements_file:
        from_file = read_requirements(source_directory, settings.pip_requirements_file)
    packages.set_pip_requirements(merge(list(settings.pip_packages or ()), from_file))


def _name(store: Any) -> Any:
    return getattr(store, "name", store)
