"""CondaDependencies: the packages of an environment, edited in place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmaster.environments import conda_file
from trainmaster.environments.conda_file import CondaFile
from trainmaster.environments.frameworks import Release
from trainmaster.environments.requirement import is_open, merge, package_name
from trainmaster.job.errors import UserErrorException

__all__ = ["CondaDependencies", "package_name"]

_PYTHON = re.compile(r"(?:\S+::)?python\s*(?:(?:=+|\s)\s*(?P<version>\d[\w.]*)\S*)?")
_VERSION = re.compile(r"\d+(\.\d+)*")
_TENSORFLOW = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu")
_FIRST_WITHOUT_GPU_PACKAGE = (2, 12)
_CNTK_VERSION = "2.7"
_SDK_ORIGIN = "https://pypi.org/simple"


class CondaDependencies:
    """Packages of pip and conda, and the Python release; empty unless a conda file or lists are given.

    v1 began with Python 3.6.2 and `azureml-defaults`. Here the default Python is the one that submits. The SDK is not
    a package of the environment, because every job gets its runtime. Packages `azureml-*` are kept here and in files;
    when the environment is built, they are replaced by the packages they depend on.

    >>> packages = CondaDependencies.create(pip_packages=["numpy"])
    >>> packages.add_pip_package("numpy==2.0")
    >>> list(packages.pip_packages)
    ['numpy==2.0']
    """

    def __init__(
        self,
        conda_dependencies_file_path: str | os.PathLike[str] | None = None,
        _underlying_structure: Mapping[str, Any] | None = None,
    ) -> None:
        self._name = conda_file.DEFAULT_NAME
        self._python_version = ""
        self._channels: list[str] = []
        self._conda_packages: list[str] = []
        self._pip_packages: list[str] = []
        self._pip_options: list[str] = []
        self._variables: dict[str, str] = {}
        if conda_dependencies_file_path is not None:
            path = _path("conda_dependencies_file_path", conda_dependencies_file_path)
            self._take(conda_file.read_conda_file(path, f"conda file {str(path)!r}"))
        elif _underlying_structure is not None:
            self._take(conda_file.conda_file_of(_underlying_structure, "the conda specification"))

    @classmethod
    def create(
        cls,
        pip_indexurl: str | None = None,
        pip_packages: Iterable[str] | None = None,
        conda_packages: Iterable[str] | None = None,
        python_version: str | None = None,
        pin_sdk_version: bool = True,
    ) -> CondaDependencies:
        """From lists of packages. `pin_sdk_version` has no effect: the SDK is not a package of the environment."""
        created = cls()
        if python_version:
            created.set_python_version(python_version)
        for package in _list_texts("conda_packages", conda_packages):
            created.add_conda_package(package)
        for package in _list_texts("pip_packages", pip_packages):
            created.add_pip_package(package)
        if pip_indexurl:
            created.set_pip_index_url(pip_indexurl)
        return created

    @classmethod
    def from_file(cls, file: Path, where: str) -> CondaDependencies:
        """From a conda file; `where` names it in messages."""
        created = cls()
        created._take(conda_file.read_conda_file(file, where))
        return created

    @classmethod
    def parse(cls, text: str, where: str) -> CondaDependencies:
        """From the text of a conda file; `where` names it in messages."""
        created = cls()
        created._take(conda_file.parse_conda_file(text, where))
        return created

    @staticmethod
    def merge_requirements(requirements: Iterable[str]) -> list[str]:
        """Combines the requirements of the same package, with the limits of all.

        >>> CondaDependencies.merge_requirements(["numpy>=1.20", "NumPy<2"])
        ['numpy>=1.20,<2']
        """
        return merge(_list_texts("requirements", requirements))

    @staticmethod
    def sdk_origin_url() -> str:
        """The package index of v1's SDK. It is not used."""
        return _SDK_ORIGIN

    @property
    def variables(self) -> dict[str, str]:
        """The `variables` of a conda file, which the script gets."""
        return dict(self._variables)

    @property
    def conda_channels(self) -> Iterator[str]:
        """The channels that were added."""
        return iter(tuple(self._channels))

    @property
    def conda_packages(self) -> Iterator[str]:
        """The conda packages; the Python first, if one was set."""
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

    def get_default_number_of_packages(self) -> tuple[int, int]:
        """How many conda and pip packages are there by default."""
        return (0, 0)

    def get_python_version(self) -> str:
        """The Python that was set; empty means the one that submits."""
        return self._python_version

    def set_python_version(self, version: str) -> None:
        """Sets the Python release, such as `3.11`."""
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
        """Removes a conda channel, if it is there."""
        _check_text("channel", channel)
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
        """Removes a conda package by its exact text, if it is there."""
        _check_text("conda_package", conda_package)
        if _PYTHON.fullmatch(conda_package.strip()):
            raise UserErrorException(
                "conda_package: python cannot be removed", hint="Use set_python_version to change it."
            )
        self._conda_packages = [kept for kept in self._conda_packages if kept != conda_package]

    def add_pip_package(self, pip_package: str) -> None:
        """Adds a pip package. It replaces another release of the same package."""
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
        """Removes a pip package by its name, if it is there."""
        _check_text("pip_package", pip_package)
        name = package_name(pip_package)
        self._pip_packages = [kept for kept in self._pip_packages if package_name(kept) != name]

    def set_pip_requirements(self, pip_requirements: Iterable[str]) -> None:
        """Replaces all pip packages and options, line by line as in a requirements file."""
        lines = _list_texts("pip_requirements", pip_requirements)
        self._pip_options = [line for line in lines if line.startswith("-")]
        self._pip_packages = [line for line in lines if not line.startswith("-")]

    def set_pip_index_url(self, index_url: str) -> None:
        """Uses another package index, or an additional one: `--extra-index-url https://...`."""
        _check_text("index_url", index_url)
        self.set_pip_option(index_url if index_url.startswith("-") else f"--index-url {index_url}")

    def set_pip_option(self, pip_option: str) -> None:
        """Adds an option for pip. It replaces the same option, unless that may be repeated, as `--extra-index-url`."""
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
        """Removes an option for pip by its name, if it is there."""
        name = _option_name(pip_option)
        self._pip_options = [kept for kept in self._pip_options if _option_name(kept) != name]

    def add_cntk_package(self, core_type: str = "cpu") -> None:
        """Adds the last release of CNTK, which has wheels for Python 3.6 and older."""
        gpu = _is_gpu(core_type)
        self.add_pip_package(f"cntk-gpu=={_CNTK_VERSION}" if gpu else f"cntk=={_CNTK_VERSION}")

    def add_tensorflow_pip_package(self, core_type: str = "cpu", version: str | None = None) -> None:
        """Adds TensorFlow, by default the newest release. Imported from `azureml`, the default is 1.13.1, as in v1."""
        gpu, pin = _is_gpu(core_type), _pin("==", version)
        for name in _TENSORFLOW:
            self.remove_pip_package(name)
        release = self._tensorflow() if version is None else None
        if release is not None:
            of_pip = [each for each in self._pip_packages if not is_open(each)]
            named = {package_name(each) for each in (*of_pip, *self._conda_packages)}
            for package in release.packages(gpu):
                if package_name(package) not in named:
                    self.add_pip_package(package)
        elif gpu and version and _release(version) < _FIRST_WITHOUT_GPU_PACKAGE:
            self.add_pip_package(f"tensorflow-gpu{pin}")
        else:
            self.add_pip_package(f"tensorflow[and-cuda]{pin}" if gpu else f"tensorflow{pin}")

    def add_tensorflow_conda_package(self, core_type: str = "cpu", version: str | None = None) -> None:
        """Adds TensorFlow from conda; the default release is that of `add_tensorflow_pip_package`."""
        gpu, pin = _is_gpu(core_type), _pin("=", version)
        release = self._tensorflow() if version is None else None
        if release is not None:
            pin = release.requirement.replace("==", "=")
        self._conda_packages = [kept for kept in self._conda_packages if package_name(kept) not in _TENSORFLOW]
        self.add_conda_package(f"tensorflow-gpu{pin}" if gpu else f"tensorflow{pin}")

    def _tensorflow(self) -> Release | None:
        """The default release; None means the newest."""
        return None

    def save_to_file(self, base_directory: str | os.PathLike[str], conda_file_path: str | None = None) -> str:
        """Writes the conda file into `base_directory` and returns its path there. `save` is newer."""
        name = conda_file_path or conda_file.FILE_NAME
        self.save(_path("base_directory", base_directory) / name)
        return name

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes the conda file to `path`, or as `conda_dependencies.yml` into a folder (default: the current one)."""
        place = _path("path", "." if path is None else path)
        if place.is_dir():
            place = place / conda_file.FILE_NAME
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self.serialize_to_string(), encoding="utf-8")
        except OSError as error:
            raise UserErrorException(f"{place} cannot be written", cause=str(error)) from None
        return str(place)

    def serialize_to_string(self) -> str:
        """The conda file as YAML text."""
        return conda_file.dump_conda_file(self._file())

    def as_dict(self) -> dict[str, Any]:
        """The conda file as nested lists and dicts."""
        return conda_file.as_dict(self._file())

    def _file(self) -> CondaFile:
        return CondaFile(
            name=self._name,
            channels=tuple(self._channels),
            packages=tuple(self.conda_packages),
            pip=(*self._pip_options, *self._pip_packages),
            variables=self._variables,
        )

    def _take(self, file: CondaFile) -> None:
        self._name = file.name
        self._variables = dict(file.variables)
        for channel in file.channels:
            self.add_channel(channel)
        for package in file.packages:
            self.add_conda_package(package)
        # Two lines for one package stay two lines, because their markers may differ.
        self.set_pip_requirements(file.pip)

    def __repr__(self) -> str:
        parts = [*self.conda_packages, *(f"pip: {package}" for package in self._pip_packages)]
        return f"CondaDependencies({', '.join(parts)})"


def _option_name(option: str) -> str:
    return re.split(r"[\s=]", option.strip(), maxsplit=1)[0]


def _list_texts(name: str, values: Iterable[str] | None) -> list[str]:
    # A string is iterable too, and would become one package per character.
    if isinstance(values, str) or not isinstance(values, Iterable | None):
        raise UserErrorException(f"{name} must be a list of strings, such as {name}=['numpy'], not {values!r}")
    listed = [] if values is None else list(values)
    for value in listed:
        _check_text(name, value)
    return listed


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or any(ord(letter) < 32 for letter in value):
        raise UserErrorException(f"{name} must be a string of one line, not {value!r}")


def _path(name: str, value: str | os.PathLike[str]) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise UserErrorException(f"{name} must be a path, not {value!r}")
    return Path(value)


def _is_gpu(core_type: str) -> bool:
    kind = core_type.lower() if isinstance(core_type, str) else core_type
    if kind not in ("cpu", "gpu"):
        raise UserErrorException(f"core_type must be 'cpu' or 'gpu', not {core_type!r}")
    return kind == "gpu"


def _pin(operator: str, version: str | None) -> str:
    if version is None:
        return ""
    if not isinstance(version, str) or not re.fullmatch(r"\d[\w.]*", version):
        raise UserErrorException(f"version must be a release such as '2.15.0', not {version!r}")
    return f"{operator}{version}"


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
