"""ScriptRunConfig: a script or a command, and the settings to run it with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.job.errors import ExperimentExecutionException, TrainingException, UserErrorException
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators import data, values
from trainmaster.sdk.estimators.arguments import from_list
from trainmaster.sdk.estimators.compile import Program, job_spec
from trainmaster.sdk.estimators.compute_target import target_name
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainmaster.sdk.estimators.distribution import record
from trainmaster.sdk.estimators.docker import DockerConfiguration
from trainmaster.sdk.estimators.program import Names, check_exclusive, command_words, find_program
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.source import source_folder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.notices import warn
from trainmaster.shared.spelling import suggests_keywords

MAX_DURATION_SECONDS_DEFAULT = 2592000
_NAMES = Names("script", "module")


# The names that estimators and the command line use.
_SYNONYMS = {
    "entry_script": "script",
    "entry_module": "module",
    "script_params": "arguments",
    "args": "arguments",
    "target": "compute_target",
    "environment_definition": "environment",
    "env": "environment",
    "distributed_training": "distributed_job_config",
    "distributed_backend": "distributed_job_config",
    "pip_packages": "environment",
    "conda_packages": "environment",
}


@suggests_keywords(_SYNONYMS)
class ScriptRunConfig:
    """A script, notebook or module of a folder with its arguments, or a command, on a target (`local` by default).

    With `run_config` the settings of that object apply, as in v1: compute_target, environment,
    distributed_job_config, max_run_duration_seconds, docker_runtime_config, max_retries, hang_seconds and
    priority are ignored. Unlike in v1, a local target may have several nodes; submit checks whether the request fits
    the target.
    """

    def __init__(
        self,
        source_directory: str | os.PathLike[str],
        script: str | None = None,
        arguments: Sequence[Any] | None = None,
        run_config: RunConfiguration | None = None,
        compute_target: Any = None,
        environment: Environment | None = None,
        distributed_job_config: Any = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = MAX_DURATION_SECONDS_DEFAULT,
        command: str | Sequence[Any] | None = None,
        docker_runtime_config: DockerConfiguration | None = None,
        *,
        module: str | None = None,
        max_retries: int = 0,
        hang_seconds: float | None = None,
        priority: int | None = None,
    ) -> None:
        self.source_directory = values.path("source_directory", source_directory)
        self.script = None if script is None else values.relative_path("script", script)
        self.arguments = None if arguments is None else values.items("arguments", arguments)
        self.command = command
        self.module = values.optional_text("module", module)
        check_exclusive(_NAMES, self.script, self.module, command, self.arguments)
        from_list("arguments", self.arguments or ())
        if command:
            command_words(command)
        if resume_from is not None:
            data.check_resume_from(resume_from)
        self._resume_from = resume_from
        settings = {
            "compute_target": compute_target,
            "environment": environment,
            "distributed_job_config": distributed_job_config,
            "docker_runtime_config": docker_runtime_config,
        }
        if run_config is None:
            self.run_config = _new_run_config(settings)
            self.run_config.max_run_duration_seconds = values.seconds(
                "max_run_duration_seconds", max_run_duration_seconds
            )
            self.run_config.max_retries = values.retries("max_retries", max_retries)
            self.run_config.hang_seconds = values.silence("hang_seconds", hang_seconds)
            self.run_config.priority = values.priority("priority", priority)
        else:
            limited = max_run_duration_seconds != MAX_DURATION_SECONDS_DEFAULT
            settings["max_run_duration_seconds"] = max_run_duration_seconds if limited else None
            settings["max_retries"] = max_retries or None
            settings["hang_seconds"] = hang_seconds
            settings["priority"] = priority
            self.run_config = _check_run_config(run_config, settings)

    def compile(self, overrides: Mapping[str, Any]) -> JobSpec:
        """The job, with the settings as they are now. It takes no overrides: set attributes instead.

        `show_output`, which v1's notebooks pass, has no effect, as in v1: submit does not wait.
        """
        unknown = sorted(set(overrides) - {"show_output"})
        if unknown:
            raise TrainingException(
                f"a ScriptRunConfig takes no overrides at submit: {', '.join(unknown)}",
                hint="Set them in the ScriptRunConfig.",
            )
        return job_spec(self.run_config, self._program(), (), self._resume_from)

    def _program(self) -> Program:
        config = self.run_config
        script = self.script if self.script is not None else config.script
        arguments = self.arguments if self.arguments is not None else config.arguments
        command = self.command if self.command is not None else config.command
        module = self.module if self.module is not None else config.module
        if not (script or module or command):
            source_folder(self.source_directory)
            raise ExperimentExecutionException(
                "script or command is missing",
                hint="Write script='train.py' or command=['make', 'model'].",
            )
        words = from_list("arguments", values.items("arguments", arguments))
        return find_program(self.source_directory, _NAMES, script, module, command, words)


def _check_run_config(config: Any, settings: Mapping[str, Any]) -> RunConfiguration:
    if not isinstance(config, RunConfiguration):
        raise UserErrorException(f"run_config must be a RunConfiguration, not {type(config).__name__}")
    ignored = [name for name, value in settings.items() if value is not None]
    if ignored:
        warn(f"{', '.join(ignored)} of the ScriptRunConfig: ignored, because run_config is given")
    return config


def _new_run_config(settings: Mapping[str, Any]) -> RunConfiguration:
    config = RunConfiguration()
    if settings["compute_target"] is not None:
        config.target = target_name("compute_target", settings["compute_target"])
    environment, docker = settings["environment"], settings["docker_runtime_config"]
    if environment is not None:
        if not isinstance(environment, Environment):
            raise UserErrorException(
                f"environment must be an Environment, not {type(environment).__name__}",
                hint="Write environment=Environment('name') and set its .python section.",
            )
        config.environment = environment
    if docker is not None:
        if not isinstance(docker, DockerConfiguration):
            raise UserErrorException(
                f"docker_runtime_config must be a DockerConfiguration, not {type(docker).__name__}"
            )
        config.docker = docker
    if settings["distributed_job_config"] is not None:
        _distribute(config, settings["distributed_job_config"])
    return config


def _distribute(config: RunConfiguration, job: Any) -> None:
    if not isinstance(job, MpiConfiguration | TensorflowConfiguration | PyTorchConfiguration):
        raise UserErrorException(
            f"distributed_job_config cannot be a {type(job).__name__}",
            hint="Use an MpiConfiguration, TensorflowConfiguration or PyTorchConfiguration.",
        )
    record(config, job)
    # As in v1: with TensorFlow there is one worker on each node.
    config.node_count = job.worker_count if isinstance(job, TensorflowConfiguration) else job.node_count
