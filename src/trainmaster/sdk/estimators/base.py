"""The base of all estimators: checks settings, builds a run configuration, compiles it to a job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from trainmaster.job.errors import ExperimentExecutionException, TrainingException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.estimators import data, rules, values
from trainmaster.sdk.estimators.arguments import Arguments, from_list, from_params
from trainmaster.sdk.estimators.build import run_configuration
from trainmaster.sdk.estimators.compile import Program, job_spec
from trainmaster.sdk.estimators.program import ENTRY_NAMES, find_program
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.settings import Settings, read
from trainmaster.sdk.estimators.source import file_inside
from trainmaster.sdk.v1 import old_parameters
from trainmaster.shared.job_spec import Binding, JobSpec
from trainmaster.shared.notices import warn

OVERRIDES = ("script_params", "inputs", "source_directory_data_store")


class BaseEstimator:
    """A folder, a script, its arguments and packages, and the nodes and processes to run it with.

    Differences from v1: a local target may have several nodes, and submit checks whether the request fits the target;
    a container is used only for your own image (`custom_docker_image`), with the requested packages; `vm_size` without
    a target creates a cluster for the run.
    """

    KIND: ClassVar[rules.Kind]
    PARAMETERS: ClassVar[frozenset[str]]

    def __init__(self, source_directory: str | os.PathLike[str], given: Mapping[str, Any]) -> None:
        self._source_directory = values.path("source_directory", source_directory)
        self._settings = old_parameters.with_new_names(read(type(self), given))
        self._check(self._settings)
        old_parameters.warn_about(self._settings)
        if self._settings.conda_dependencies_file and self.KIND.name != "Estimator":
            warn(f"conda_dependencies_file: the run has only the packages of the file, not those of {self.KIND.name}")
        self._run_config = run_configuration(self._source_directory, self._settings)
        # Submit warns of an explicit request for a container, but not of v1's default.
        self._run_config.docker.use_docker = bool(given.get("use_docker"))

    @property
    def source_directory(self) -> str:
        """The folder with the code."""
        return self._source_directory

    @property
    def run_config(self) -> RunConfiguration:
        """The settings of the run, which can be edited until submit."""
        return self._run_config

    @property
    def conda_dependencies(self) -> CondaDependencies:
        """The packages of the run, which can be edited until submit."""
        return self._run_config.environment.python.conda_dependencies

    @property
    def has_script_params(self) -> bool:
        """Whether its arguments come from `script_params`."""
        return bool(self._settings.script_params)

    def compile(self, overrides: Mapping[str, Any]) -> JobSpec:
        """The job, with the settings as they are now.

        `overrides` apply to this submit only: `script_params` and `inputs` replace those with the same name and are
        added to the others; `source_directory_data_store` has no effect, because all nodes of a run see one working
        folder.
        """
        unknown = sorted(set(overrides) - set(OVERRIDES))
        if unknown:
            raise TrainingException(
                f"{', '.join(unknown)} cannot be overridden at submit",
                hint=f"Only {', '.join(OVERRIDES)} can be overridden.",
            )
        if overrides.get("source_directory_data_store") is not None:
            rules.check_data_store(overrides["source_directory_data_store"])
        try:
            program = self._program(overrides.get("script_params"))
        except ExperimentExecutionException as error:
            raise TrainingException(
                error.headline, inner_exception=error, cause=error.cause, hint=error.hint
            ) from error
        return job_spec(self._run_config, program, self._inputs(overrides), self._settings.resume_from)

    def _check(self, settings: Settings) -> None:
        rules.check(self.KIND, settings)
        if settings.conda_dependencies_file:
            file_inside(self._source_directory, "conda_dependencies_file", settings.conda_dependencies_file)

    def _program(self, params: Any) -> Program:
        config = self._run_config
        return find_program(
            self._source_directory, ENTRY_NAMES, config.script, config.module, config.command, self._arguments(params)
        )

    def _arguments(self, params: Any) -> Arguments:
        if params is None:
            return from_list("arguments", values.items("arguments", self._run_config.arguments))
        own = values.mapping("script_params", self._settings.script_params)
        return from_params({**own, **values.mapping("script_params", params)})

    def _inputs(self, overrides: Mapping[str, Any]) -> list[Binding]:
        first = data.inputs_of("inputs", overrides.get("inputs"))
        named = {binding.name for binding in first}
        own = data.inputs_of("inputs", self._settings.inputs)
        return [*first, *(binding for binding in own if binding.name not in named)]
