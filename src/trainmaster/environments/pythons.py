"""Finds the Pythons of this machine. Never downloads or starts one."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from trainmaster.job.errors import PythonNotFoundException
from trainmaster.shared.job_spec import EnvironmentSpec

_PROGRAM = re.compile(r"python(3\.\d+)")
_ASKED = re.compile(r"3\.\d+")
_PYENV = re.compile(r"(3\.\d+)\.(\d+)")
_UV = re.compile(r"cpython-(3\.\d+)\.(\d+)-.+")
_OLDEST = (3, 6)
_OF_SYSTEM = ("/usr/", "/bin/", "/lib")
_ELSEWHERE: ContextVar[tuple[str, tuple[str, ...]] | None] = ContextVar("pythons elsewhere", default=None)
_CONDA_HOMES = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")


def find_python(version: str) -> str:
    """Find the path of a Python `version` (major.minor): the running one, or another one on this machine."""
    if version == running_version():
        return os.path.realpath(sys.executable)
    found = all_pythons()
    if version not in found:
        raise PythonNotFoundException(
            f"this machine has no Python {version}",
            cause=f"Found: {', '.join(found)}.",
            hint=f"Install Python {version}, for example with 'uv python install {version}' or "
            f"'pyenv install {version}', or choose another python_version.",
        )
    return found[version]


def python_for(spec: EnvironmentSpec) -> str:
    """Find the Python to build an environment with.

    In an image, only a Python in its own folder works, because the folder can be mounted. uv's Pythons come first:
    the only system library they need is libc.
    """
    version = spec.python_version or running_version()
    if spec.container is None:
        return find_python(version)
    home = Path(os.environ.get("HOME") or "/")
    found = [path for named, path in (*_find_uv(os.environ, home), (version, find_python(version))) if named == version]
    for path in found:
        if os.access(path, os.X_OK) and not os.path.realpath(path).startswith(_OF_SYSTEM):
            return path
    raise PythonNotFoundException(
        f"no Python {version} of this machine can be used in an image",
        cause=f"{found[-1]} belongs to the operating system, and an image has its own.",
        hint=f"Install one with 'uv python install {version}'. Or remove pip_packages and conda_packages: the script "
        "then uses the image's own Python and packages.",
    )


def newer_for(spec: EnvironmentSpec) -> list[str]:
    """The Pythons above the requested one that `spec` can be built with, nearest first."""
    found = []
    for version in newer_than(spec.python_version, list(all_pythons())):
        with contextlib.suppress(PythonNotFoundException):
            python_for(replace(spec, python_version=version))
            found.append(version)
    return found


def newer_than(asked: str, versions: Sequence[str]) -> list[str]:
    """The versions above the requested one, nearest first; none for Python 2, whose scripts they cannot run.

    >>> newer_than("3.6", ["3.6", "3.10", "3.8"]), newer_than("2.7", ["3.6"])
    (['3.8', '3.10'], [])
    """
    if not _ASKED.fullmatch(asked):
        return []
    return sorted((each for each in versions if _order(each) > _order(asked)), key=_order)


def older_than(running: str, versions: Sequence[str]) -> list[str]:
    """The versions below the running one, newest first.

    >>> older_than("3.11", ["3.6", "3.9", "3.10", "3.11", "3.12"])
    ['3.10', '3.9', '3.6']
    """
    return sorted((each for each in versions if _order(each) < _order(running)), key=_order, reverse=True)


@contextlib.contextmanager
def choose_from(running: str, versions: Sequence[str]) -> Iterator[None]:
    """Within it, `running_version` and `all_pythons` are about another machine, where the environment will be built."""
    token = _ELSEWHERE.set((running, tuple(versions)))
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def running_version() -> str:
    """The running Python (major.minor)."""
    elsewhere = _ELSEWHERE.get()
    return elsewhere[0] if elsewhere else f"{sys.version_info.major}.{sys.version_info.minor}"


def all_pythons(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Map version (major.minor) to path for every CPython 3.6 or newer on this machine, oldest version first.

    If a version exists several times, the order is: the running one, PATH, pyenv, uv, conda.
    """
    elsewhere = _ELSEWHERE.get()
    if elsewhere is not None:
        return {version: f"python{version}" for version in sorted({*elsewhere[1], elsewhere[0]}, key=_order)}
    found = {running_version(): os.path.realpath(sys.executable)}
    home = Path(environ.get("HOME") or "/")
    places = (_find_on_path(environ), _find_pyenv(environ, home), _find_uv(environ, home), _find_conda(environ, home))
    for version, path in itertools.chain(*places):
        if _order(version) >= _OLDEST and os.access(path, os.X_OK):
            found.setdefault(version, path)
    return {version: found[version] for version in sorted(found, key=_order)}


def _find_on_path(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for folder in environ.get("PATH", os.defpath).split(":"):
        # Shims of pyenv, asdf and mise exist for every version but run only the selected ones.
        if folder and "shims" not in Path(folder).parts:
            yield from _find_in_folder(Path(folder))


def _find_pyenv(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    root = Path(environ.get("PYENV_ROOT") or home / ".pyenv")
    return _newest_patches(root / "versions", _PYENV)


def _find_uv(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return _newest_patches(Path(environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python"), _UV)


def _find_conda(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    roots = [Path(environ[name]) for name in ("CONDA_PREFIX", "MAMBA_ROOT_PREFIX") if environ.get(name)]
    for root in (*roots, *(home / name for name in _CONDA_HOMES)):
        for prefix in (root, *_folders(root / "envs")):
            yield from _find_in_folder(prefix / "bin")


def _find_in_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Find the programs python3.x in a folder. Links, as in virtual environments, are resolved."""
    for path in _entries(folder):
        name = _PROGRAM.fullmatch(path.name)
        if name and path.is_file():
            yield name[1], os.path.realpath(path)


def _newest_patches(folder: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Find Pythons in folders named by full version, newest patch first. Other implementations do not match."""
    found = [(int(name[2]), name[1], path) for path in _folders(folder) if (name := pattern.fullmatch(path.name))]
    for _, version, path in sorted(found, reverse=True):
        yield version, str(path / "bin" / f"python{version}")


def _folders(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_dir()]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _order(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
