"""The packages of a run: from lists, and from files in the source folder."""

from __future__ import annotations

from trainmaster.environments.requirement import package_name
from trainmaster.environments.requirements_file import read_requirements_file
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.estimators.source import file_inside


def read_requirements(source_directory: str, given: str) -> list[str]:
    """The lines of `pip_requirements_file`, without comments."""
    file = file_inside(source_directory, "pip_requirements_file", given)
    return read_requirements_file(file, f"pip_requirements_file {given!r}")


def read_conda(source_directory: str, given: str) -> CondaDependencies:
    """The packages of `conda_dependencies_file`."""
    file = file_inside(source_directory, "conda_dependencies_file", given)
    return CondaDependencies.from_file(file, f"conda_dependencies_file {given!r}")


def merge(packages: list[str], from_file: list[str]) -> list[str]:
    """`packages`, then the file's lines for other packages: the program takes precedence."""
    named = {package_name(package) for package in packages}
    return [
        *packages,
        *(line for line in from_file if line.startswith("-") or package_name(line) not in named),
    ]
