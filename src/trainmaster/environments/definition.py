"""Environment: what a person says about the Python a script runs with."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from typing import Any

from trainmaster.environments.conda_dependencies import CondaDependencies
from trainmaster.errors import UserErrorException
from trainmaster.job import EnvironmentSpec


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

    def clone(self, new_name: str) -> Environment:
        """A copy under another name."""
        cloned = copy.deepcopy(self)
        cloned.name, cloned.version = Environment(new_name).name, None
        return cloned

    def to_spec(self) -> EnvironmentSpec:
        """What a job needs to know of it: the user's interpreter, or the packages to build with."""
        return self.python.to_spec()

    def __repr__(self) -> str:
        return f"Environment(name={self.name!r})"


EnvironmentDefinition = Environment


class PythonSection:
    """`environment.python`: the user's own interpreter, or packages."""

    def __init__(self) -> None:
        self.user_managed_dependencies = False
        self.interpreter_path = "python"
        self.conda_dependencies = CondaDependencies()
        self.conda_dependencies_file: str | None = None

    def to_spec(self) -> EnvironmentSpec:
        """The interpreter or the packages, as a job needs them."""
        if self.user_managed_dependencies:
            return EnvironmentSpec(user_managed=True, interpreter=_interpreter(self.interpreter_path))
        if self.conda_dependencies_file is not None:
            raise UserErrorException(
                "python.conda_dependencies_file: conda files are not read in this release",
                hint="Give the packages to python.conda_dependencies.",
            )
        packages = self.conda_dependencies
        if not isinstance(packages, CondaDependencies):
            raise UserErrorException(
                f"python.conda_dependencies must be a CondaDependencies, not {type(packages).__name__}",
                hint="Use CondaDependencies.create(pip_packages=[...]).",
            )
        return EnvironmentSpec(
            python_version=".".join(packages.get_python_version().split(".")[:2]),
            pip_packages=(*packages.pip_options, *packages.pip_packages),
            conda_packages=tuple(name for name in packages.conda_packages if not name.startswith("python=")),
        )

    def take(self, spec: EnvironmentSpec) -> None:
        """Becomes what `to_spec` gave: the way back from a run to its environment."""
        self.user_managed_dependencies = spec.user_managed
        if spec.user_managed:
            self.interpreter_path = spec.interpreter or "python"
        packages = CondaDependencies()
        if spec.python_version:
            packages.set_python_version(spec.python_version)
        for package in spec.conda_packages:
            packages.add_conda_package(package)
        for package in spec.pip_packages:
            if package.startswith("-"):
                packages.set_pip_option(package)
            else:
                packages.add_pip_package(package)
        self.conda_dependencies = packages


class DockerSection:
    """`environment.docker`: kept, and without effect, because there is no container engine here."""

    def __init__(self) -> None:
        self.enabled = False
        self.base_image_registry = ContainerRegistry()
        self.shm_size = "2g"
        self.shared_volumes = True
        self.arguments: list[str] = []
        self.gpu_support = False
        self.platform: Any = None
        self._base: tuple[str, Any] = ("base_image", None)

    @property
    def base_image(self) -> Any:
        """The image to build upon; excludes the other two."""
        return self._get("base_image")

    @base_image.setter
    def base_image(self, value: Any) -> None:
        self._set("base_image", value)

    @property
    def base_dockerfile(self) -> Any:
        """The Dockerfile to build upon; excludes the other two."""
        return self._get("base_dockerfile")

    @base_dockerfile.setter
    def base_dockerfile(self, value: Any) -> None:
        self._set("base_dockerfile", value)

    @property
    def build_context(self) -> Any:
        """The folder to build an image from; excludes the other two."""
        return self._get("build_context")

    @build_context.setter
    def build_context(self, value: Any) -> None:
        self._set("build_context", value)

    def requested(self) -> bool:
        """Whether a container was asked for."""
        return bool(self.enabled or self._base[1] or getattr(self.base_image_registry, "address", None))

    def _get(self, kind: str) -> Any:
        return self._base[1] if self._base[0] == kind else None

    def _set(self, kind: str, value: Any) -> None:
        present, other = self._base
        if value is None and present != kind:
            return
        if value is not None and other is not None and present != kind:
            warnings.warn(f"docker.{kind} replaces docker.{present}", UserWarning, stacklevel=3)
        self._base = (kind, value)


class ContainerRegistry:
    """Where a private image is; kept, and without effect here."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.username: str | None = None
        self.password: str | None = None


def _interpreter(path: Any) -> str:
    if not isinstance(path, str) or not path.strip() or any(ord(letter) < 32 for letter in path):
        raise UserErrorException(f"python.interpreter_path must be the path of a Python, not {path!r}")
    if path == "python":
        return sys.executable
    # A bare name is looked up on the PATH of the job; a path must mean the same wherever the job runs.
    return os.path.abspath(os.path.expanduser(path)) if "/" in path else path
