"""InferenceConfig: the scoring script of a service, its folder and its packages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainmaster.environments.base_images import is_base_image
from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.backend.backend import ContentStore
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.services import code
from trainmaster.shared.notices import warn
from trainmaster.shared.service_spec import ServiceCode

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

RUNTIMES = ("python", "spark-py")
CUDA_VERSIONS = ("9.0", "9.1", "10.0")


class InferenceConfig:
    """A scoring script with `init()` and `run(data)`, the folder around it, and the environment it runs in.

    The default environment is that of the run that trained the model.

    >>> config = InferenceConfig("score.py", environment=environment)    # doctest: +SKIP
    """

    def __init__(
        self,
        entry_script: str | os.PathLike[str],
        runtime: str | None = None,
        conda_file: str | os.PathLike[str] | None = None,
        extra_docker_file_steps: str | os.PathLike[str] | None = None,
        source_directory: str | os.PathLike[str] | None = None,
        enable_gpu: bool | None = None,
        description: str | None = None,
        base_image: str | None = None,
        base_image_registry: Any = None,
        cuda_version: str | None = None,
        environment: Environment | None = None,
    ) -> None:
        self.entry_script = entry_script
        self.runtime = runtime
        self.conda_file = conda_file
        self.extra_docker_file_steps = extra_docker_file_steps
        self.source_directory = source_directory
        self.enable_gpu = enable_gpu
        self.description = description
        self.base_image = base_image
        self.base_image_registry = base_image_registry
        self.cuda_version = cuda_version
        self.environment = environment
        self.validate_configuration()

    def validate_configuration(self) -> None:
        """Refuses settings that cannot be used, as v1 did."""
        if self.environment is not None and not isinstance(self.environment, Environment):
            raise WebserviceException(
                f"environment must be an Environment, not {type(self.environment).__name__}",
                hint="Use Environment.get(workspace, name) for a registered one.",
            )
        self._check_excluded()
        check_runtime(self.runtime)
        check_packages_file(self._find_file(self.conda_file))
        check_image_settings(self.base_image, self.extra_docker_file_steps, self.cuda_version)
        self.validation_script_content()

    def _check_excluded(self) -> None:
        if self.environment is None:
            return
        replaced = {
            "runtime": self.runtime,
            "conda_file": self.conda_file,
            "extra_docker_file_steps": self.extra_docker_file_steps,
            "enable_gpu": self.enable_gpu,
            "cuda_version": self.cuda_version,
            "base_image": self.base_image,
        }
        both = [name for name, value in replaced.items() if value is not None]
        if both:
            raise WebserviceException(
                f"{', '.join(both)} cannot be given together with environment", hint="Put them into the environment."
            )

    def validation_script_content(self) -> None:
        """Refuses a script that does not exist or is not valid Python."""
        code.check_parses(self._script())

    def build_create_payload(self, workspace: Workspace, name: str, model_ids: list[str]) -> dict[str, Any]:
        """The configuration as a dict."""
        return {
            "name": name,
            "models": list(model_ids),
            "entryScript": str(self.entry_script),
            "sourceDirectory": None if self.source_directory is None else str(self.source_directory),
            "environment": getattr(self.environment, "name", None),
            "description": self.description,
        }

    def build_profile_payload(
        self,
        profile_name: str,
        input_data: Any = None,
        workspace: Workspace | None = None,
        models: Any = None,
        dataset_id: str | None = None,
        container_resource_requirements: Any = None,
        description: str | None = None,
    ) -> NoReturn:
        """Not here: v1 sent it to a service of Azure."""
        raise NotImplementedError("build_profile_payload: Trainmaster sends nothing to Azure. Use Model.profile(...).")

    def take_code(self, contents: ContentStore) -> ServiceCode:
        """A snapshot of the script and its folder, stored in the workspace."""
        script = self._script()
        if self.source_directory is None:
            return code.take_files(contents, script)
        return code.take_folder(contents, script, self.source_directory)

    def service_environment(self) -> Environment | None:
        """The requested environment; None for that of the model."""
        if self.environment is not None:
            check_container(self.environment)
            return self.environment
        if self.conda_file is not None:
            return Environment.from_conda_specification("conda_file", self._find_file(self.conda_file) or "")
        return None

    def _script(self) -> Path:
        return code.find_script("entry_script", self.entry_script, self.source_directory)

    def _find_file(self, given: str | os.PathLike[str] | None) -> Path | None:
        """A file by its path relative to the source folder, or to the current folder."""
        if given is None:
            return None
        inside = Path(self.source_directory or ".") / given
        return inside if inside.is_file() else Path(given)

    def __repr__(self) -> str:
        return f"InferenceConfig(entry_script={str(self.entry_script)!r}, source_directory={self.source_directory!r})"


def check_runtime(runtime: Any) -> None:
    """Refuses all runtimes but Python."""
    if runtime is None:
        return
    if not isinstance(runtime, str) or runtime.lower() not in RUNTIMES:
        raise WebserviceException(f"runtime must be one of {', '.join(RUNTIMES)}, not {runtime!r}")
    if runtime.lower() == "spark-py":
        raise WebserviceException("Trainmaster does not support Spark", hint="Use runtime='python'.")


def check_packages_file(path: Path | None) -> None:
    """Refuses a conda file that does not exist. Its contents are read when the service is deployed."""
    if path is not None and not path.is_file():
        raise WebserviceException(
            f"conda_file {str(path)!r} does not exist", hint="Give its path relative to the current folder."
        )


def check_image_settings(base_image: Any, steps: Any, cuda_version: Any) -> None:
    """Checks the settings for building images as v1 did. They have no effect."""
    if cuda_version is not None and str(cuda_version) not in CUDA_VERSIONS:
        raise WebserviceException(f"cuda_version must be one of {', '.join(CUDA_VERSIONS)}, not {cuda_version!r}")
    if steps is not None:
        if not Path(steps).is_file():
            raise WebserviceException(f"extra_docker_file_steps {str(steps)!r} does not exist")
        warn("extra_docker_file_steps have no effect: services run on this machine, without an image")
    if base_image is not None and not is_base_image(base_image):
        warn(f"base_image {base_image!r} is not used: services run on this machine, without an image")


def check_container(environment: Environment) -> None:
    """Refuses an environment whose packages are in an image: services run on the machine itself."""
    docker = environment.docker
    image = docker.base_image if docker.enabled else None
    if docker.base_dockerfile or docker.build_context or (image and not is_base_image(image)):
        if environment.python.user_managed_dependencies:
            raise WebserviceException(
                f"environment {environment.name!r} is an image, and services run on this machine without one",
                hint="Give the packages: Environment.from_pip_requirements or from_conda_specification.",
            )
        warn(f"the image of environment {environment.name!r} is not used; its packages are installed on this machine")
