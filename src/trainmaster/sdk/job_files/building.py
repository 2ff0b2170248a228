"""From a JobDescription to the estimator that a program would write instead."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.requirements_file import read_requirements_file
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators import values
from trainmaster.sdk.estimators.base import BaseEstimator
from trainmaster.sdk.estimators.data import MODEL_LOCATION
from trainmaster.sdk.estimators.distributed_job import PyTorchConfiguration
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.requirements import merge
from trainmaster.sdk.job_files.conflicts import Names, check_together
from trainmaster.sdk.job_files.description import DEFAULT_ENVIRONMENT, JobDescription
from trainmaster.sdk.job_files.entries import inputs_of
from trainmaster.sdk.job_files.keys import key_names
from trainmaster.sdk.job_files.reading import check_packages, split_distributed, split_framework
from trainmaster.shared.job_spec import EnvironmentSpec

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def build_estimator(
    job: JobDescription, open_workspace: Callable[[], Workspace], *, is_here: bool = True, as_options: bool = False
) -> BaseEstimator:
    """The estimator with the settings of `job`. `is_here` says whether the paths of Pythons are those of this machine.

    Errors name keys, or options with `as_options`. Those of estimators name their parameters; `keys.option_names` and
    `keys.key_names` have the user's names for them.
    """
    names = Names(as_options)
    check_together(job, names)
    kind, version = _estimator_class(job)
    estimator = kind(job.folder, **_settings(job, kind, version, open_workspace, names))
    config = estimator.run_config
    # The constructor's parameter is deprecated, as in v1.
    config.mpi.process_count_per_node = values.count("process_count_per_node", job.processes_per_node)
    config.arguments = [*job.arguments, *_resume_words(job)]
    config.command = list(job.command) or None
    config.environment_variables = dict(job.env)
    if job.environment:
        config.environment = _get_registered(job.environment, open_workspace())
    else:
        _complete_environment(config.environment, job, is_here)
    config.environment.docker.gpu_support = job.gpu
    _set_details(config, job)
    return estimator


def _estimator_class(job: JobDescription) -> tuple[type[BaseEstimator], str | None]:
    if not job.framework:
        from trainmaster.sdk.estimators.estimator import Estimator

        return Estimator, None
    name, version = split_framework(job.framework)
    if name == "pytorch":
        from trainmaster.sdk.estimators.pytorch import PyTorch

        return PyTorch, version
    if name == "tensorflow":
        from trainmaster.sdk.estimators.tensorflow import TensorFlow

        return TensorFlow, version
    if name == "sklearn":
        from trainmaster.sdk.estimators.sklearn import SKLearn

        return SKLearn, version
    from trainmaster.sdk.estimators.chainer import Chainer

    return Chainer, version


def _settings(
    job: JobDescription,
    kind: type[BaseEstimator],
    version: str | None,
    open_workspace: Callable[[], Workspace],
    names: Names,
) -> dict[str, Any]:
    """What the estimator's class is called with: only what is given."""
    packages = [] if job.environment else _pip_packages(job)
    given = {
        "entry_script": job.script or None,
        "entry_module": job.module or None,
        "compute_target": job.target or (None if job.vm_size else "local"),
        "vm_size": job.vm_size or None,
        "vm_priority": job.vm_priority or None,
        "node_count": None if job.nodes == 1 else job.nodes,
        "distributed_training": _training(job) if job.distributed else None,
        "use_gpu": job.gpu or None,
        "custom_docker_image": job.image or None,
        "shm_size": job.shm_size or None,
        "pip_packages": [line for line in packages if not line.startswith("-")] or None,
        "conda_packages": list(job.conda) or None,
        "framework_version": version,
        "inputs": list(inputs_of(job, open_workspace)) or None,
        "max_run_duration_seconds": job.max_seconds,
        "max_retries": job.max_retries,
        "hang_seconds": job.hang_seconds,
        "priority": job.priority or None,
    }
    found = {name: value for name, value in given.items() if value is not None}
    per_node = "process_count_per_node" if job.processes_per_node > 1 else ""
    for name in (*found, *([per_node] if per_node else ())):
        if name not in kind.PARAMETERS:
            raise UserErrorException(
                f"{names(key_names()[name])} cannot be used with {names('framework')} {job.framework}",
                cause=f"{kind.__name__} runs one process on one node, without a GPU.",
            )
    return found


def _training(job: JobDescription) -> Any:
    kind, workers, servers = split_distributed(job.distributed)
    if kind == "ps":
        return ParameterServer(workers, servers)
    if kind == "mpi":
        return Mpi(job.processes_per_node)
    return {"gloo": Gloo, "nccl": Nccl}[kind](job.min_nodes, wait_seconds=job.wait_seconds)


def _pip_packages(job: JobDescription) -> list[str]:
    packages = list(job.pip)
    check_packages(packages)
    if not job.pip_file:
        return packages
    return merge(packages, read_requirements_file(Path(job.pip_file), f"pip_requirements_file {job.pip_file!r}"))


def _resume_words(job: JobDescription) -> tuple[str, ...]:
    return ("--resume-from", f"$AZUREML_DATAREFERENCE_{MODEL_LOCATION}") if job.resume_from else ()


def _get_registered(given: str, workspace: Workspace) -> Environment:
    name, _, version = given.partition(":")
    return Environment.get(workspace, name, version or None)


def _complete_environment(environment: Environment, job: JobDescription, is_here: bool) -> None:
    """Adds what the constructor of an estimator does not take."""
    environment.name = job.details.environment_name or DEFAULT_ENVIRONMENT
    environment.docker.arguments = list(job.image_arguments)
    python = environment.python
    if job.python or job.user_managed:
        python.user_managed_dependencies = True
        python.interpreter_path = _interpreter(job, is_here)
        return
    if job.conda_file:
        python.conda_dependencies = CondaDependencies.from_file(
            Path(job.conda_file), f"conda_dependencies_file {job.conda_file!r}"
        )
    packages = python.conda_dependencies
    for option in _pip_packages(job):
        if option.startswith("-"):
            packages.set_pip_option(option)
    if job.python_version:
        packages.set_python_version(job.python_version)
    for channel in job.conda_channels:
        packages.add_channel(channel)
    details = job.details
    python.recipe = EnvironmentSpec(
        optional_packages=details.optional_packages,
        accelerator="cpu" if job.accelerator == "cpu" else "cuda" if job.accelerator == "cuda" else "any",
        horovod=details.horovod,
        open_mpi=details.open_mpi,
        exclude_newer=job.exclude_newer,
        lock=details.lock,
    )


def _interpreter(job: JobDescription, is_here: bool) -> str:
    given = job.python
    if not given or not is_here or job.image:
        # The Python of this program; or a path on the server or in the image.
        return given or "python"
    import shutil

    found = shutil.which(os.path.expanduser(given))
    if found is None:
        raise UserErrorException(
            f"interpreter_path {given!r} does not exist",
            hint="interpreter_path is the path of a Python, or its name on the PATH.",
        )
    return os.path.abspath(found)


def _set_details(config: Any, job: JobDescription) -> None:
    details = job.details
    config.framework = details.framework or config.framework
    config.communicator = details.communicator or config.communicator
    if details.process_count is not None:
        backend = split_distributed(job.distributed)[0] if job.distributed else "gloo"
        config.pytorch = PyTorchConfiguration(backend, details.process_count, 1, job.min_nodes, job.wait_seconds)
