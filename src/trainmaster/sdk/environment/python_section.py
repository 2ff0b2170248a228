"""`environment.python`: the user's own interpreter, or packages."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.environments import pythons
from trainmaster.environments.horovod.requested import compile_named
from trainmaster.environments.python_range import choose, is_range
from trainmaster.environments.requirements_file import check_no_other_file, check_requirement
from trainmaster.environments.sdk_packages import replace_sdk_packages
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.shared.job_spec import EnvironmentSpec, ThisPython
from trainmaster.shared.notices import warn

_NEWEST_MINOR = 14


class PythonSection:
    """The user's own interpreter, or packages, from an object or from a conda file."""

    def __init__(self) -> None:
        self.user_managed_dependencies = False
        self.interpreter_path = "python"
        self.conda_dependencies = CondaDependencies()
        self.conda_dependencies_file: str | None = None
        """Read at submit, relative to the source folder. Its packages replace those of `conda_dependencies`."""
        self.recipe = EnvironmentSpec()
        """What frameworks add: optional packages, accelerator, Horovod, Open MPI. Other fields are ignored."""

    def to_spec(self, base_directory: str | None = None) -> EnvironmentSpec:
        """The interpreter or the packages, as a job needs them."""
        if self.user_managed_dependencies:
            return EnvironmentSpec(user_managed=True, interpreter=_interpreter(self.interpreter_path))
        packages = self.packages(base_directory)
        python, conda_packages = _python_of(packages)
        spec = replace(
            self.recipe,
            python_version=python,
            pip_packages=(*_options(packages), *_without_sdk(packages)),
            conda_packages=conda_packages,
            conda_channels=tuple(packages.conda_channels),
        )
        return compile_named(spec)

    def packages(self, base_directory: str | None = None) -> CondaDependencies:
        """The packages in effect: those of the file if one is given, else those of the object."""
        if self.conda_dependencies_file is not None:
            given = self.conda_dependencies_file
            if not isinstance(given, str | os.PathLike) or not str(given):
                raise UserErrorException(f"python.conda_dependencies_file must be the path of a file, not {given!r}")
            return CondaDependencies(Path(base_directory or ".") / given)
        if not isinstance(self.conda_dependencies, CondaDependencies):
            raise UserErrorException(
                f"python.conda_dependencies must be a CondaDependencies, not {type(self.conda_dependencies).__name__}",
                hint="Use CondaDependencies.create(pip_packages=[...]).",
            )
        return self.conda_dependencies

    def take(self, spec: EnvironmentSpec) -> None:
        """Takes over the result of `to_spec`, to get the environment of a run."""
        self.user_managed_dependencies = spec.user_managed
        if spec.user_managed:
            self.interpreter_path = spec.interpreter or "python"
        packages = CondaDependencies()
        if spec.python_version:
            packages.set_python_version(spec.python_version)
        for channel in spec.conda_channels:
            packages.add_channel(channel)
        for package in spec.conda_packages:
            packages.add_conda_package(package)
        packages.set_pip_requirements(spec.pip_packages)
        self.conda_dependencies = packages
        self.conda_dependencies_file = None
        self.recipe = EnvironmentSpec(
            optional_packages=spec.optional_packages,
            accelerator=spec.accelerator,
            horovod=spec.horovod,
            open_mpi=spec.open_mpi,
            exclude_newer=spec.exclude_newer,
        )


def _python_of(packages: CondaDependencies) -> tuple[str, tuple[str, ...]]:
    """The Python to build with (empty for the one that submits), and the other conda packages."""
    version = ".".join(packages.get_python_version().split(".")[:2])
    # "python=3" allows any of them.
    version = "" if version == "3" else version
    others = [name for name in packages.conda_packages if not name.startswith("python=")]
    ranges = [name for name in others if is_range(name)]
    if version or len(ranges) != 1:
        return version, tuple(others)
    running = pythons.running_version()
    chosen = choose(ranges[0], [running]) or choose(ranges[0], _others())
    if chosen is None:
        return "", tuple(others)
    return "" if chosen == running else chosen, tuple(name for name in others if name not in ranges)


def _others() -> list[str]:
    """The Pythons of this machine, newest first, then those that conda can install."""
    return [*reversed(pythons.all_pythons()), *(f"3.{minor}" for minor in range(_NEWEST_MINOR, 5, -1))]


def _options(packages: CondaDependencies) -> list[str]:
    options = list(packages.pip_options)
    for option in options:
        check_no_other_file("one of the pip options", option)
    return options


def _without_sdk(packages: CondaDependencies) -> list[str]:
    """The pip packages without those of Azure's SDK: a job never gets Microsoft's packages unexpectedly."""
    found = replace_sdk_packages(list(packages.pip_packages))
    for package in found.packages:
        # Environment.add_private_pip_wheel returns file addresses.
        if "file:///" not in package:
            check_requirement("one of the pip packages", package)
    if found.warning:
        warn(found.warning)
    return found.packages


def _interpreter(path: Any) -> str:
    if not isinstance(path, str) or not path.strip() or any(ord(letter) < 32 for letter in path):
        raise UserErrorException(f"python.interpreter_path must be the path of a Python, not {path!r}")
    if path == "python":
        return ThisPython(sys.executable)
    # A bare name is found on the PATH of the job. A path is made absolute, because the job runs in another folder.
    return os.path.abspath(os.path.expanduser(path)) if "/" in path else path
