"""Compiles a run configuration to a JobSpec."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators import data, values
from trainmaster.sdk.estimators.arguments import Arguments
from trainmaster.sdk.estimators.container import with_container
from trainmaster.sdk.estimators.distribution import distribution_of, node_count_of
from trainmaster.sdk.estimators.environment_variables import environment_variables, warn_reserved
from trainmaster.sdk.estimators.inherited import select_inherited
from trainmaster.sdk.estimators.mpi_environment import for_distribution
from trainmaster.sdk.estimators.notebook_environment import for_notebook
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.source import Entry
from trainmaster.shared.job_spec import Binding, DataBinding, DatasetInput, DatasetOutput, JobSpec
from trainmaster.shared.notices import warn

_CONTAINER_INSTANCE = "containerinstance"


class Submittable(Protocol):
    """What `Experiment.submit` accepts: estimators and ScriptRunConfig."""

    def compile(self, overrides: Mapping[str, Any]) -> JobSpec:
        """The job, with the settings as they are now. `overrides` apply to this submit only."""
        ...


@dataclass(frozen=True)
class Program:
    """What to run: a script or a command of a source folder, with its arguments and data."""

    source_directory: str
    entry: Entry | None = None
    command: tuple[str, ...] = ()
    arguments: Arguments = Arguments()  # noqa: RUF009 (frozen)


def job_spec(config: RunConfiguration, program: Program, inputs: Iterable[Binding], resume_from: Any) -> JobSpec:
    """The job that `config` and `program` describe."""
    arguments = _with_resume(program.arguments, resume_from)
    environment = _environment(config)
    variables = _variables(config, program.source_directory)
    _warn_ignored(config)
    distribution = distribution_of(config)
    entry = program.entry or Entry("")
    bindings = data.merge_bindings(
        (
            *arguments.data,
            *inputs,
            *data.bind_references(config.data_references),
            *data.datasets_of("data", config.data),
            *data.datasets_of("output_data", config.output_data),
        )
    )
    of_job = with_container(
        for_distribution(environment.to_spec(program.source_directory), distribution, environment.name),
        environment,
        config,
    )
    return JobSpec(
        source_directory=program.source_directory,
        target=_target(config),
        script=entry.script,
        entry=entry.kind,
        program=entry.program,
        command=program.command,
        arguments=arguments.words,
        node_count=node_count_of(config),
        distribution=distribution,
        environment=for_notebook(of_job) if entry.kind == "notebook" else of_job,
        environment_name=environment.name,
        environment_version=environment.find_registered_version(),
        environment_variables=variables,
        inherited_variables=select_inherited(os.environ),
        data=tuple(each for each in bindings if isinstance(each, DataBinding)),
        dataset_inputs=tuple(each for each in bindings if isinstance(each, DatasetInput)),
        dataset_outputs=tuple(each for each in bindings if isinstance(each, DatasetOutput)),
        max_run_duration_seconds=values.seconds("max_run_duration_seconds", config.max_run_duration_seconds),
        max_retries=values.retries("max_retries", config.max_retries),
        hang_seconds=values.silence("hang_seconds", config.hang_seconds),
        priority=values.priority("priority", config.priority),
        framework=config.framework,
        communicator=config.communicator,
        use_gpu=bool(config.environment.docker.gpu_support),
        vm_size=values.optional_text("amlcompute.vm_size", config.amlcompute.vm_size) or "",
        vm_priority=values.optional_text("amlcompute.vm_priority", config.amlcompute.vm_priority) or "",
    )


def _target(config: RunConfiguration) -> str:
    """The name of the target. v1's container instance for one run becomes this machine."""
    if config.target != _CONTAINER_INSTANCE:
        return config.target
    warn(f"target '{_CONTAINER_INSTANCE}' is not available: the run is on 'local'")
    return "local"


def _with_resume(arguments: Arguments, resume_from: Any) -> Arguments:
    if resume_from is None:
        return arguments
    binding = data.resume_binding(resume_from)
    words = (*arguments.words, "--resume-from", f"$AZUREML_DATAREFERENCE_{binding.name}")
    return Arguments(words, (*arguments.data, binding))


def _environment(config: RunConfiguration) -> Environment:
    # Programs assign this attribute, so its type is checked here.
    if not isinstance(config.environment, Environment):
        raise UserErrorException(
            f"environment must be an Environment, not {type(config.environment).__name__}",
            hint="Write Environment('name') and set its .python section.",
        )
    return config.environment


def _variables(config: RunConfiguration, source_directory: str) -> dict[str, str]:
    of_environment = _environment(config).job_variables(source_directory)
    variables = {
        **environment_variables("environment.environment_variables", of_environment),
        **environment_variables("environment_variables", config.environment_variables),
    }
    warn_reserved(variables)
    return variables


def _warn_ignored(config: RunConfiguration) -> None:
    python = config.environment.python
    if python.user_managed_dependencies and any(getattr(python.conda_dependencies, "pip_packages", ())):
        warn("the packages of conda_dependencies are ignored, because the environment is user managed")
