"""The result of `ContainerImage.image_configuration(...)`: a scoring script with its packages, in v1's older way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.backend.backend import ContentStore
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.services import code
from trainmaster.sdk.services.inference_config import check_image_settings, check_packages_file, check_runtime
from trainmaster.shared.service_spec import ServiceCode


class ContainerImageConfig:
    """A scoring script, further files, and a conda file."""

    def __init__(
        self,
        execution_script: str | os.PathLike[str],
        runtime: str,
        conda_file: str | os.PathLike[str] | None = None,
        docker_file: str | os.PathLike[str] | None = None,
        schema_file: str | os.PathLike[str] | None = None,
        dependencies: Sequence[str | os.PathLike[str]] | None = None,
        enable_gpu: bool | None = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        base_image: str | None = None,
        base_image_registry: Any = None,
        cuda_version: str | None = None,
    ) -> None:
        self.execution_script = execution_script
        self.runtime = runtime
        self.conda_file = conda_file
        self.docker_file = docker_file
        self.schema_file = schema_file
        self.dependencies = dependencies
        self.enable_gpu = enable_gpu
        self.tags = tags
        self.properties = properties
        self.description = description
        self.base_image = base_image
        self.base_image_registry = base_image_registry
        self.cuda_version = cuda_version
        self.validate_configuration()

    def validate_configuration(self) -> None:
        """Refuses settings that cannot be used, as v1 did."""
        if self.runtime is None:
            raise WebserviceException("runtime is missing", hint="Write runtime='python'.")
        check_runtime(self.runtime)
        if isinstance(self.dependencies, str) or not isinstance(self.dependencies or (), Sequence):
            raise WebserviceException(f"dependencies must be a list of paths, not {self.dependencies!r}")
        for path in self._companions():
            if not path.exists():
                raise WebserviceException(
                    f"dependency {str(path)!r} does not exist", hint="Give its path relative to the current folder."
                )
        check_packages_file(None if self.conda_file is None else Path(self.conda_file))
        check_image_settings(self.base_image, self.docker_file, self.cuda_version)
        code.check_parses(self._script())

    def take_code(self, contents: ContentStore) -> ServiceCode:
        """A snapshot of the script and the further files, stored in the workspace."""
        return code.take_files(contents, self._script(), self._companions())

    def service_environment(self) -> Environment | None:
        """The environment of the conda file; None for that of the model."""
        if self.conda_file is None:
            return None
        return Environment.from_conda_specification("conda_file", self.conda_file)

    def _script(self) -> Path:
        return code.find_script("execution_script", self.execution_script)

    def _companions(self) -> list[Path]:
        schema = [] if self.schema_file is None else [self.schema_file]
        return [Path(each) for each in (*(self.dependencies or ()), *schema)]


def check_image_configuration(config: Any) -> ContainerImageConfig:
    """Refuses anything but the result of `image_configuration`."""
    if not isinstance(config, ContainerImageConfig):
        raise WebserviceException(
            f"image_config must be the result of ContainerImage.image_configuration(...), not {type(config).__name__}"
        )
    config.validate_configuration()
    return config
