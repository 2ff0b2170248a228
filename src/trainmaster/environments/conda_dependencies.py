"""CondaDependencies: the packages of an environment, edited in place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trainmaster.errors import UserErrorException

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PYTHON = re.compile(r"(?:\S+::)?python\s*(?:=+\s*(?P<version>\d[\w.]*)\S*)?")
_VERSION = re.compile(r"\d+(\.\d+)*")


class CondaDependencies:
    """Packages of pip and conda, and the Python release; empty unless told otherwise.

    v1 began with Python 3.6.2 and `azureml-defaults`. Here the Python is the one that submits, and the SDK
    itself is no package of the environment, because every job is given its runtime.

    >>> packages = CondaDependencies.create(pip_packages=["numpy"])
    >>> packages.add_pip_package("numpy==2.0")
    >>> list(packages.pip_packages)
    ['numpy==2.0']
    """

    def __init__(self, conda_dependencies_file_path: str | None = None) -> None:
        if conda_dependencies_file_path is not None:
            raise UserErrorException(
                "conda_dependencies_file_path: conda files are not read in this release",
                hint="Give the packages to CondaDependencies.create(pip_packages=[...]).",
            )
        self._python_version = ""
        self._channels: list[str] = []
        self._conda_packages: list[str] = []
        self._pip_packages: list[str] = []
        self._pip_options: list[str] = []

    @staticmethod
    def create(
        pip_indexurl: str | None = None,
        pip_packages: Iterable[str] | None = None,
        conda_packages: Iterable[str] | None = None,
        python_version: str | None = None,
        pin_sdk_version: bool = True,
    ) -> CondaDependencies:
        """From lists of packages; `pin_sdk_version` has no effect, since there is no SDK to pin."""
        created = CondaDependencies()
        if python_version:
            created.set_python_version(python_version)
        for package in _listed("conda_packages", conda_packages):
            created.add_conda_package(package)
        for package in _listed("pip_packages", pip_packages):
            created.add_pip_package(package)
        if pip_indexurl:
            created.set_pip_index_url(pip_indexurl)
        return created

    @property
    def conda_channels(self) -> Iterator[str]:
        """The channels that were added."""
        return iter(tuple(self._channels))

    @property
    def conda_packages(self) -> Iterator[str]:
        """The conda packages; the Python first, where one was set."""
        python = [f"python={self._python_version}"] if self._python_version else []
        return iter((*python, *self._conda_packages))

    @property
    def pip_packages(self) -> Iterator[str]:
        """The pip packages, without options."""
        return iter(tuple(self._pip_packages))

    @property
    def pip_options(self) -> Iterator[str]:
        """The options for pip, such as `--extra-index-url ...`."""
        return iter(tuple(self._pip_options))

    def get_python_version(self) -> str:
        """The Python that was set; empty means the one that submits."""
        return self._python_version

    def set_python_version(self, version: str) -> None:
        """Asks for another Python, such as `3.11`."""
        _check_text("python_version", version)
        if not _VERSION.fullmatch(version):
            raise UserErrorException(
                f"python_version must be a release such as '3.11', not {version!r}",
            )
        self._python_version = version

    def add_channel(self, channel: str) -> None:
        """Adds a conda channel."""
        _check_text("channel", channel)
        if channel not in self._channels:
            self._channels.append(channel)

    def remove_channel(self, channel: str) -> None:
        """Drops a conda channel; an unknown one is no error."""
        self._channels = [kept for kept in self._channels if kept != channel]

    def add_conda_package(self, conda_package: str) -> None:
        """Adds a conda package; `python=3.11` sets the Python."""
        _check_text("conda_package", conda_package)
        python = _PYTHON.fullmatch(conda_package.strip())
        if python and python["version"]:
            self.set_python_version(python["version"].rstrip("."))
        elif not python and conda_package not in self._conda_packages:
            self._conda_packages.append(conda_package)

    def remove_conda_package(self, conda_package: str) -> None:
        """Drops a conda package by its exact text; an unknown one is no error."""
        if isinstance(conda_package, str) and _PYTHON.fullmatch(conda_package.strip()):
            raise UserErrorException(
                "conda_package: python cannot be removed", hint="Use set_python_version to ask for another."
            )
        self._conda_packages = [kept for kept in self._conda_packages if kept != conda_package]

    def add_pip_package(self, pip_package: str) -> None:
        """Adds a pip package, in place of another release of the same one."""
        _check_text("pip_package", pip_package)
        if pip_package.lstrip().startswith("-"):
            raise UserErrorException(
                f"pip_package must be a package, not the option {pip_package!r}",
                hint="Use set_pip_option for it.",
            )
        name = package_name(pip_package)
        for position, present in enumerate(self._pip_packages):
            if package_name(present) == name:
                self._pip_packages[position] = pip_package
                return
        self._pip_packages.append(pip_package)

    def remove_pip_package(self, pip_package: str) -> None:
        """Drops a pip package by its name; an unknown one is no error."""
        name = package_name(pip_package)
        self._pip_packages = [kept for kept in self._pip_packages if package_name(kept) != name]

    def set_pip_requirements(self, pip_requirements: Iterable[str]) -> None:
        """Replaces all pip packages and options, line by line as in a requirements file."""
        lines = _listed("pip_requirements", pip_requirements)
        self._pip_options = [line for line in lines if line.startswith("-")]
        self._pip_packages = [line for line in lines if not line.startswith("-")]

    def set_pip_index_url(self, index_url: str) -> None:
        """Uses another package index, or an additional one: `--extra-index-url https://...`."""
        _check_text("index_url", index_url)
        self.set_pip_option(index_url if index_url.startswith("-") else f"--index-url {index_url}")

    def set_pip_option(self, pip_option: str) -> None:
        """Adds an option for pip, in place of the same one; some, as `--extra-index-url`, may be repeated."""
        _check_text("pip_option", pip_option)
        if not pip_option.startswith("-"):
            raise UserErrorException(
                f"pip_option must begin with a dash, not {pip_option!r}",
                hint="Use add_pip_package for a package.",
            )
        if _option_name(pip_option) not in ("--extra-index-url", "-f", "--find-links", "--trusted-host"):
            self.remove_pip_option(pip_option)
        if pip_option not in self._pip_options:
            self._pip_options.append(pip_option)

    def remove_pip_option(self, pip_option: str) -> None:
        """Drops an option for pip by its name; an unknown one is no error."""
        name = _option_name(pip_option)
        self._pip_options = [kept for kept in self._pip_options if _option_name(kept) != name]


def package_name(requirement: str) -> str:
    """The name in a requirement as package indexes compare it; without one, the whole text.

    >>> package_name("Scikit_Learn[extra]>=1.0")
    'scikit-learn'
    """
    text = requirement.strip()
    egg = re.search(r"#egg=([A-Za-z0-9._-]+)", text)
    if egg:
        text = egg[1]
    found = _NAME.match(text)
    if not found or ("://" in text and "@" not in text.partition("://")[0]):
        return text
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _option_name(option: str) -> str:
    return re.split(r"[\s=]", option.strip(), maxsplit=1)[0]


def _listed(name: str, values: Iterable[str] | None) -> list[str]:
    # A plain string is iterable too, and would become one package per letter.
    if isinstance(values, str) or not isinstance(values, Iterable | None):
        raise UserErrorException(f"{name} must be a list of strings, such as {name}=['numpy'], not {values!r}")
    listed = [] if values is None else list(values)
    for value in listed:
        _check_text(name, value)
    return listed


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or any(ord(letter) < 32 for letter in value):
        raise UserErrorException(f"{name} must be a string of one line, not {value!r}")
