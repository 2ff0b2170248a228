"""Ready environments: how to find one and how a script uses it. The seam between builders and everything else."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainmaster.environments import open_mpi
from trainmaster.environments.canonical import canonical, local_files
from trainmaster.environments.manifest import is_whole
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import to_plain

CONDA_LOCK = "conda.lock"
LOCK_NAME = "environment.lock"
"""In a prefix with conda packages: their URLs and hashes."""

WARNINGS = "warnings.txt"
"""In a prefix: warnings to show to every run, one per line."""

PYTHON_THERE = "{trainmaster:python}"
"""In a plan: a placeholder for the Python of the host that runs it."""

# Part of the digest: increased when the same specification would be built differently.
_BUILD_FORMAT = 3


@dataclass(frozen=True)
class Prefix:
    """An environment a script can be started in."""

    python: str
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    """The real folder of a built environment; empty for the user's own Python."""
    warnings: tuple[str, ...] = ()
    """Warnings to show to every run."""


def digest(spec: EnvironmentSpec) -> str:
    """The name of the environment: the same digest means the same prefix."""
    asked = replace(canonical(spec), python_version=python_version(spec))
    plain = to_plain(asked)
    if not asked.newer_python:
        # Keeps the digests of environments that earlier releases built.
        del plain["newer_python"]
    if not asked.lock:
        del plain["lock"]
    parts = [_BUILD_FORMAT, os.uname().machine, plain, *map(_stamp, local_files(asked))]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _stamp(path: str) -> list[int]:
    """Size and time of a file, which change when it is replaced."""
    try:
        found = os.stat(path)
    except OSError:
        # The builder reports the missing file with the resolver's error.
        return []
    return [found.st_size, found.st_mtime_ns]


def python_version(spec: EnvironmentSpec) -> str:
    """The Python (major.minor) to build with."""
    return spec.python_version or f"{sys.version_info.major}.{sys.version_info.minor}"


def find(spec: EnvironmentSpec, workspace: WorkspaceFolder, path: str, shared: str = "") -> Prefix | None:
    """Find a ready environment: the user's own Python, or a built one that is complete.

    `shared` is a folder of ready environments that is searched first, such as one an administrator fills.
    """
    if spec.is_of_image:
        # Nothing is built.
        return Prefix(python=spec.interpreter or "python")
    if spec.user_managed:
        return _users_own(spec, path)
    name = digest(spec)
    for place in (Path(shared) if shared else None, workspace.environments):
        folder = _find_same_build(place, spec) or find_ready(place, name) if place else None
        if folder is not None:
            return replace(open_prefix(folder, path), warnings=_warnings(folder))
    return None


def _find_same_build(place: Path, spec: EnvironmentSpec) -> Path | None:
    """A complete build of the same specification that has the packages of the lock of `spec`, if it has one."""
    if not spec.lock:
        return None
    for folder in sorted(place.glob(f"{digest(replace(spec, lock=''))}.*")):
        try:
            text = (folder / LOCK_NAME).read_text(encoding="utf-8")
        except OSError:
            continue
        if content_of_lock(text) == content_of_lock(spec.lock) and is_ready(folder):
            return folder
    return None


def content_of_lock(text: str) -> list[str]:
    """What a lock says, without the day on which it was resolved."""
    return [line for line in text.splitlines() if not line.startswith("# resolved on ")]


def find_ready(place: Path, name: str) -> Path | None:
    """Find the real folder of environment `name` in `place`, if it is complete.

    The name is a link to the newest build, `<digest>.<n>`. A run keeps the folder it started with.
    """
    folder = target(place, name)
    return folder if folder is not None and is_ready(folder) else None


def target(place: Path, name: str) -> Path | None:
    """The folder that the name of an environment links to, complete or not."""
    try:
        return place / os.readlink(place / name)
    except OSError:
        return None


def is_ready(folder: Path) -> bool:
    """Whether a built environment is usable: it is complete, and the Python it is based on exists."""
    return os.access(folder / "bin" / "python", os.X_OK) and is_whole(folder)


def open_prefix(folder: Path, path: str) -> Prefix:
    """Open the prefix in `folder`, with its programs first on `path`."""
    binaries = f"{folder}/bin"
    kind = "CONDA_PREFIX" if (folder / CONDA_LOCK).is_file() else "VIRTUAL_ENV"
    return Prefix(
        python=f"{binaries}/python",
        variables={"PATH": f"{binaries}:{path}" if path else binaries, kind: str(folder), **open_mpi.variables(folder)},
        folder=str(folder),
    )


def _warnings(folder: Path) -> tuple[str, ...]:
    """Read the builder's warnings."""
    try:
        return tuple((folder / WARNINGS).read_text().splitlines())
    except OSError:
        return ()


def users_own_elsewhere(spec: EnvironmentSpec) -> Prefix:
    """The user's own Python on hosts that do not share our files. Whether it exists is checked on the host.

    A path that exists on this machine may just be the default, the submitting Python. A host without that path uses
    its own Python.
    """
    interpreter = spec.interpreter
    if not interpreter or (os.path.isabs(interpreter) and os.access(interpreter, os.X_OK)):
        return Prefix(python=PYTHON_THERE)
    return Prefix(python=interpreter)


def _users_own(spec: EnvironmentSpec, path: str) -> Prefix:
    interpreter = spec.interpreter or sys.executable
    if not os.path.isabs(interpreter):
        return Prefix(python=interpreter)
    if not os.access(interpreter, os.X_OK):
        raise EnvironmentException(
            f"the Python of this run does not exist: {interpreter}",
            hint="With user_managed=True the script runs in an existing Python of the target; check its path.",
        )
    # A command line says 'python' and means this one.
    binaries = os.path.dirname(interpreter)
    return Prefix(python=interpreter, variables={"PATH": f"{binaries}:{path}" if path else binaries})
