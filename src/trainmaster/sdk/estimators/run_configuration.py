"""RunConfiguration: all settings of a run, edited in place until it is submitted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.compute_target import LOCAL, target_name
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainmaster.sdk.estimators.docker import DockerConfiguration
from trainmaster.sdk.v1.run_sections import (
    AmlComputeConfiguration,
    BatchAiConfiguration,
    ContainerInstanceConfiguration,
    HdiConfiguration,
    HistoryConfiguration,
    SparkConfiguration,
)


class RunConfiguration:
    """Where and how a script runs. The values at submit apply, also those of an estimator's `run_config`.

    >>> config = RunConfiguration()
    >>> config.target = "local"
    >>> config.environment.python.user_managed_dependencies = True
    """

    def __init__(
        self,
        script: str | None = None,
        arguments: Sequence[Any] | None = None,
        framework: str | None = None,
        communicator: str | None = None,
        conda_dependencies: CondaDependencies | None = None,
        command: str | Sequence[Any] | None = None,
    ) -> None:
        self.script = script
        self.arguments: Any = list(arguments) if isinstance(arguments, tuple) else arguments
        self.command = command
        self.module: str | None = None
        self.framework = framework or "Python"
        self.communicator = communicator or "None"
        self.node_count = 1
        self.max_run_duration_seconds: int | None = None
        # Not in v1.
        self.max_retries = 0
        self.hang_seconds: float | None = None
        # v1's name. From -100 to 100; larger is earlier in the queue.
        self.priority: int | None = None
        self.environment = Environment("default-environment")
        self.environment_variables: dict[str, str] = {}
        self._target = LOCAL
        self._set_sections()
        if conda_dependencies is not None:
            if not isinstance(conda_dependencies, CondaDependencies):
                raise UserErrorException(
                    f"conda_dependencies must be a CondaDependencies, not {type(conda_dependencies).__name__}"
                )
            self.environment.python.conda_dependencies = conda_dependencies

    def _set_sections(self) -> None:
        self.mpi = MpiConfiguration()
        self.tensorflow = TensorflowConfiguration()
        self.pytorch = PyTorchConfiguration()
        self.data_references: dict[str, Any] = {}
        self.data: dict[str, Any] = {}
        self.output_data: dict[str, Any] = {}
        self.source_directory_data_store: Any = None
        self.docker: DockerConfiguration = DockerConfiguration()
        # For programs that set them. They have no effect.
        self.history = HistoryConfiguration()
        self.amlcompute = AmlComputeConfiguration()
        self.container_instance = ContainerInstanceConfiguration()
        self.batchai = BatchAiConfiguration()
        self.spark = SparkConfiguration()
        self.hdi = HdiConfiguration()
        self.credential_passthrough = False
        self.services: dict[str, Any] = {}
        self.prepare_environment = True

    @property
    def target(self) -> str:
        """The name of the compute target; assigning a target object stores its name."""
        return self._target

    @target.setter
    def target(self, value: Any) -> None:
        self._target = target_name("target", value)

    @property
    def auto_prepare_environment(self) -> bool:
        """Deprecated, and always true."""
        return True

    @auto_prepare_environment.setter
    def auto_prepare_environment(self, value: bool) -> None:
        """Set by programs of 2018. It has no effect: environments are always prepared."""

    def save(
        self,
        path: str | os.PathLike[str] | None = None,
        name: str | None = None,
        separate_environment_yaml: bool = False,
    ) -> None:
        """Writes `.azureml/<name>.runconfig` and a conda file below the project folder `path` (default: the current).

        Without a name, `path` is the file to write.
        """
        from trainmaster.sdk.estimators import run_configuration_file

        run_configuration_file.save(self, path, name, separate_environment_yaml)

    @staticmethod
    def load(path: str | os.PathLike[str], name: str | None = None) -> RunConfiguration:
        """Reads a file that `save` or v1 wrote, by project folder and name, or by its path."""
        from trainmaster.sdk.estimators import run_configuration_file

        config = RunConfiguration()
        run_configuration_file.load(config, path, name)
        return config

    @staticmethod
    def delete(path: str | os.PathLike[str], name: str) -> None:
        """Removes a saved run configuration."""
        from trainmaster.sdk.estimators import run_configuration_file

        run_configuration_file.delete(path, name)
