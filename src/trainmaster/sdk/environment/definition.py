"""Environment: the user's description of the Python that a script runs with."""

from __future__ import annotations

import builtins
import copy
import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainmaster.environments.build_details import BuildDetails
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment import definition_file
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.docker_section import ContainerRegistry, DockerSection
from trainmaster.sdk.environment.python_section import PythonSection
from trainmaster.sdk.v1 import curated_environments
from trainmaster.sdk.v1.spark_section import SparkSection
from trainmaster.shared.job_spec import EnvironmentSpec, JobSpec
from trainmaster.shared.notices import warn
from trainmaster.shared.records import EnvironmentRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

__all__ = [
    "ContainerRegistry",
    "DockerSection",
    "Environment",
    "EnvironmentDefinition",
    "PythonSection",
    "SparkSection",
]


class Environment:
    """A named set of packages, or the user's own Python.

    >>> mine = Environment("mine")
    >>> mine.python.conda_dependencies.add_pip_package("numpy")
    >>> mine.to_spec().pip_packages
    ('numpy',)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        if not isinstance(name, str) or not name.strip() or any(ord(letter) < 32 for letter in name):
            raise UserErrorException(f"name of an Environment must be a string of one line, not {name!r}")
        if kwargs:
            raise UserErrorException(
                f"Environment has no parameter {', '.join(sorted(kwargs))}",
                hint="Set the attributes of its .python and .docker sections.",
            )
        self.name = name
        self.version: str | None = None
        self.environment_variables: dict[str, str] = {}
        self.inferencing_stack_version: str | None = None
        self.python = PythonSection()
        self.docker = DockerSection()
        self.spark = SparkSection()
        self.lock: str | None = None
        """`run.get_environment()` only: the exact packages that were installed."""
        self._registered: dict[str, Any] | None = None

    # Registering in a workspace

    def register(self, workspace: Workspace) -> Environment:
        """Stores it in the workspace under its name, as a new version unless the newest version is the same."""
        if curated_environments.is_curated(self.name):
            raise UserErrorException(
                f"{self.name!r} cannot be registered: names that begin with AzureML or Microsoft are reserved",
                hint="Register environment.clone('my-environment').",
            )
        definition = definition_file.describe(self)
        registered = _open_record(workspace.connection.call("environments.put", name=self.name, definition=definition))
        self.version, self._registered = registered.version, definition
        return registered

    @staticmethod
    def get(workspace: Workspace, name: str, version: str | None = None, label: str | None = None) -> Environment:
        """A registered environment: its newest version, or the one with this version or label.

        A curated name of Azure's, such as `AzureML-PyTorch-1.6-CPU`, gives that release of the framework, with NumPy,
        pandas, SciPy and a Python of the same time.
        """
        if isinstance(name, str) and curated_environments.is_curated(name):
            # v1's curated environments can be had without a workspace.
            with nullcontext() if workspace is None else workspace.backend.pythons():
                stand_in = curated_environments.stand_in(name)
            if stand_in.packages:
                on = f" on Python {stand_in.python}" if stand_in.python else ""
                warn(f"Azure's {name!r} is not available; it is replaced by {', '.join(stand_in.packages)}{on}")
            return _open_curated(name, stand_in)
        if version is not None and label is not None:
            raise UserErrorException("version and label cannot be given together", hint="Leave one of them out.")
        return _open_record(
            workspace.connection.call("environments.get", name=name, version=_number(version), label=label)
        )

    @staticmethod
    def list(workspace: Workspace) -> dict[str, Environment]:
        """Name to the newest version of each registered environment, and to the curated ones that Trainmaster knows."""
        registered = {record["name"]: _open_record(record) for record in workspace.connection.call("environments.list")}
        return {
            **registered,
            **{name: _open_curated(name, curated_environments.stand_in(name)) for name in curated_environments.NAMES},
        }

    @staticmethod
    def label(workspace: Workspace, name: str, version: str, labels: str | builtins.list[str]) -> None:
        """Gives labels to a version of a registered environment. A label moves from another version that had it."""
        wanted = [labels] if isinstance(labels, str) else labels
        if not isinstance(wanted, Iterable) or not all(isinstance(each, str) and each.strip() for each in wanted):
            raise UserErrorException(f"labels must be strings, such as ['good'], not {labels!r}")
        workspace.connection.call("environments.label", name=name, version=_number(version), labels=[*wanted])

    def find_registered_version(self) -> str:
        """The registered version that is the same; empty if it was never registered, or has changed since."""
        unchanged = self._registered is not None and definition_file.describe(self) == self._registered
        return self.version or "" if unchanged else ""

    # Creating from something else

    def clone(self, new_name: str) -> Environment:
        """A copy under another name."""
        cloned = copy.deepcopy(self)
        cloned.name, cloned.version, cloned._registered = Environment(new_name).name, None, None
        return cloned

    @staticmethod
    def from_job(job: JobSpec, name: str) -> Environment:
        """The environment that a job was compiled from. `name` is used if it had none."""
        environment = Environment(job.environment_name or name)
        environment.version = job.environment_version or None
        environment.environment_variables = dict(job.environment_variables)
        environment.python.take(job.environment)
        container = job.environment.container
        if container is not None:
            docker = environment.docker
            docker.enabled, docker.base_image = True, container.image
            docker.shm_size, docker.arguments = container.shm_size, [*container.arguments]
        return environment

    @staticmethod
    def from_conda_specification(name: str, file_path: str | os.PathLike[str]) -> Environment:
        """The packages of a conda YAML file."""
        environment = Environment(name)
        environment.python.conda_dependencies = CondaDependencies(_path("file_path", file_path))
        return environment

    @staticmethod
    def from_pip_requirements(
        name: str, file_path: str | os.PathLike[str], pip_version: str | None = None
    ) -> Environment:
        """The packages of a pip requirements file; with `pip_version`, also this release of pip."""
        from trainmaster.environments.requirements_file import read_requirements_file

        file = _path("file_path", file_path)
        environment = Environment(name)
        packages = environment.python.conda_dependencies
        packages.set_pip_requirements(read_requirements_file(file, f"requirements file {str(file)!r}"))
        if pip_version is not None:
            packages.add_pip_package(f"pip=={pip_version}")
        return environment

    @staticmethod
    def from_existing_conda_environment(name: str, conda_environment_name: str | os.PathLike[str]) -> Environment:
        """The packages of a conda environment of this machine, by its name or folder. It needs conda."""
        from trainmaster.sdk.environment import existing_conda

        environment = Environment(name)
        environment.python.conda_dependencies = existing_conda.export(conda_environment_name)
        return environment

    @staticmethod
    def from_docker_image(
        name: str,
        image: str,
        container_registry: ContainerRegistry | None = None,
        conda_specification: str | os.PathLike[str] | None = None,
        pip_requirements: str | os.PathLike[str] | None = None,
    ) -> Environment:
        """Sets an image; see `environment.docker` for its effect."""
        environment = _with_packages(name, conda_specification, pip_requirements)
        environment.docker.enabled, environment.docker.base_image = True, image
        if container_registry is not None:
            environment.docker.base_image_registry = container_registry
        return environment

    @staticmethod
    def from_dockerfile(
        name: str,
        dockerfile: str | os.PathLike[str],
        conda_specification: str | os.PathLike[str] | None = None,
        pip_requirements: str | os.PathLike[str] | None = None,
    ) -> Environment:
        """Sets a Dockerfile, by its path or its text; see `environment.docker` for its effect."""
        environment = _with_packages(name, conda_specification, pip_requirements)
        environment.docker.base_dockerfile = _text_or_file(dockerfile)
        return environment

    @staticmethod
    def from_docker_build_context(name: str, docker_build_context: Any) -> Environment:
        """Sets a folder to build an image from; see `environment.docker` for its effect."""
        environment = _with_packages(name, None, None)
        environment.docker.build_context = docker_build_context
        return environment

    @staticmethod
    def add_private_pip_wheel(workspace: Workspace, file_path: str | os.PathLike[str], exist_ok: bool = False) -> str:
        """Copies a wheel into the workspace and returns its address, for `add_pip_package`."""
        return workspace.backend.contents.keep_wheel(_path("file_path", file_path), exist_ok)

    # Files

    def save_to_directory(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Writes `azureml_environment.json` and `conda_dependencies.yml` into a folder."""
        definition_file.save(self, _path("path", path), overwrite)

    @staticmethod
    def load_from_directory(path: str | os.PathLike[str]) -> Environment:
        """Reads a folder that `save_to_directory` wrote, also that of v1."""
        folder = _path("path", path)
        name, version, definition = definition_file.load(folder)
        environment = Environment(name)
        definition_file.fill(environment, definition, str(folder / definition_file.FILE_NAME))
        environment.version = None if version is None else str(version)
        return environment

    # Building

    def build(self, workspace: Workspace, image_build_compute: Any = None) -> BuildDetails:
        """Builds it now, so that the first run does not have to wait. `image_build_compute` has no effect."""
        from trainmaster.environments.sources import source_variables

        sources = source_variables(os.environ)
        answer = workspace.connection.call("environments.build", spec=to_plain(self.to_spec()), sources=sources)
        return BuildDetails(answer["digest"], answer["folder"])

    def build_local(self, workspace: Workspace, platform: Any = None, **kwargs: Any) -> BuildDetails:
        """The same as `build`: everything is built on this machine."""
        return self.build(workspace)

    def get_image_details(self, workspace: Workspace) -> NoReturn:
        """Not here: environments are folders, not images."""
        raise UserErrorException(
            f"environment {self.name!r} has no image: environments are folders, not containers",
            hint="environment.to_spec() and run.get_environment() show what it has.",
        )

    # For a job

    def to_spec(self, base_directory: str | None = None) -> EnvironmentSpec:
        """The environment for a job: the user's interpreter, or the packages to build with.

        `base_directory` is the folder of `python.conda_dependencies_file` (default: the current folder).
        """
        return self.python.to_spec(base_directory)

    def job_variables(self, base_directory: str | None = None) -> Mapping[str, str]:
        """The variables that a script gets: those of the conda file, then `environment_variables`."""
        own = self.environment_variables if self.environment_variables is not None else {}
        if self.python.user_managed_dependencies or not isinstance(own, Mapping):
            return own
        return {**self.python.packages(base_directory).variables, **own}

    def __repr__(self) -> str:
        version = f", version={self.version!r}" if self.version else ""
        if self.python.user_managed_dependencies:
            return f"Environment(name={self.name!r}{version}, interpreter={self.python.interpreter_path!r})"
        return f"Environment(name={self.name!r}{version}, packages={self.python.conda_dependencies!r})"


EnvironmentDefinition = Environment


def _open_curated(name: str, stand_in: curated_environments.StandIn) -> Environment:
    environment = Environment(name)
    python = environment.python
    python.conda_dependencies = CondaDependencies.create(
        pip_packages=stand_in.packages, python_version=stand_in.python or None
    )
    python.recipe = EnvironmentSpec(accelerator=stand_in.accelerator, optional_packages=stand_in.optional)
    return environment


def _open_record(answer: Mapping[str, Any]) -> Environment:
    record = from_plain(EnvironmentRecord, answer)
    environment = Environment(record.name)
    definition_file.fill(environment, record.definition, f"environment {record.name!r}")
    environment.version = str(record.version)
    environment._registered = definition_file.describe(environment)
    return environment


def _with_packages(
    name: str,
    conda_specification: str | os.PathLike[str] | None,
    pip_requirements: str | os.PathLike[str] | None,
) -> Environment:
    if conda_specification is not None and pip_requirements is not None:
        raise UserErrorException(
            "conda_specification and pip_requirements cannot be given together", hint="Leave one of them out."
        )
    if conda_specification is not None:
        return Environment.from_conda_specification(name, conda_specification)
    if pip_requirements is not None:
        return Environment.from_pip_requirements(name, pip_requirements)
    # As in v1, an image without packages uses its own Python.
    environment = Environment(name)
    environment.python.user_managed_dependencies = True
    return environment


def _text_or_file(dockerfile: str | os.PathLike[str]) -> str:
    if isinstance(dockerfile, str) and "\n" in dockerfile:
        return dockerfile
    file = _path("dockerfile", dockerfile)
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserErrorException(f"dockerfile {str(file)!r} cannot be read", cause=str(error)) from None


def _path(name: str, value: str | os.PathLike[str]) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise UserErrorException(f"{name} must be a path, not {value!r}")
    return Path(value).expanduser()


def _number(version: Any) -> int | None:
    if version is None:
        return None
    try:
        return int(version)
    except (TypeError, ValueError):
        raise UserErrorException(f"version must be a number such as '2', not {version!r}") from None
