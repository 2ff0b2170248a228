"""A ready environment, and how to tell that one is there. The seam between builders and everybody else.

Other builders (conda, frameworks) add a way to make the folder; what is ready and how a script uses it stays here.
"""

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
"""In a prefix made of conda packages: which ones, each with its address and hash."""

WARNINGS = "warnings.txt"
"""In a prefix: what every run in it should know, a line each."""

PYTHON_THERE = "{trainmaster:python}"
"""In a plan: the Python of the host that it is carried out on."""

# Part of the digest: raised when the same specification would be built in another way.
_BUILD_FORMAT = 3


@dataclass(frozen=True)
class Prefix:
    """An environment a script can be started in."""

    python: str
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    """Where a built one really lies; empty for the user's own."""
    warnings: tuple[str, ...] = ()
    """What a run in it should know."""


def digest(spec: EnvironmentSpec) -> str:
    """The name of what `spec` asks for: the same digest means the same prefix."""
    asked = replace(canonical(spec), python_version=python_version(spec))
    plain = to_plain(asked)
    if not asked.newer_python:
        # Environments that earlier releases built keep their names.
        del plain["newer_python"]
    parts = [_BUILD_FORMAT, os.uname().machine, plain, *map(_stamp, local_files(asked))]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _stamp(path: str) -> list[int]:
    """Tells a file from another one that has taken its place."""
    try:
        found = os.stat(path)
    except OSError:
        # The builder says it in the resolver's words.
        return []
    return [found.st_size, found.st_mtime_ns]


def python_version(spec: EnvironmentSpec) -> str:
    """Major.minor of the Python to build with."""
    return spec.python_version or f"{sys.version_info.major}.{sys.version_info.minor}"


def find(spec: EnvironmentSpec, workspace: WorkspaceFolder, path: str, shared: str = "") -> Prefix | None:
    """The environment if it is ready: the user's own at once, a built one when its folder is there and whole.

    `shared` is a folder of ready environments that is looked at first, such as one an administrator fills.
    """
    if spec.is_of_image:
        # Nothing is built.
        return Prefix(python=spec.interpreter or "python")
    if spec.user_managed:
        return _users_own(spec)
    name = digest(spec)
    for place in (Path(shared) if shared else None, workspace.environments):
        folder = ready(place, name) if place else None
        if folder is not None:
            return replace(built(folder, path), warnings=_warnings(folder))
    return None


def ready(place: Path, name: str) -> Path | None:
    """The real folder of environment `name` in `place`, if it is whole.

    The name is a link to the newest build, `<digest>.<n>`: a run keeps the folder that it began with.
    """
    folder = target(place, name)
    return folder if folder is not None and is_ready(folder) else None


def target(place: Path, name: str) -> Path | None:
    """What the name of an environment leads to, whole or not."""
    try:
        return place / os.readlink(place / name)
    except OSError:
        return None


def is_ready(folder: Path) -> bool:
    """Whether a built environment can be used: all of it is there, and so is the Python it stands on."""
    return os.access(folder / "bin" / "python", os.X_OK) and is_whole(folder)


def check_buildable(spec: EnvironmentSpec) -> None:
    """Refuses what no builder of this release can make."""
    if spec.container is not None:
        from trainmaster.environments import containers

        containers.check(spec, os.environ)
    if (spec.horovod or spec.open_mpi) and not spec.user_managed:
        # Not at the top: what is compiled knows prefixes.
        from trainmaster.environments import compiled

        compiled.check(spec, os.environ)


def built(folder: Path, path: str) -> Prefix:
    """The prefix in `folder`, with its programs first on `path`."""
    binaries = f"{folder}/bin"
    kind = "CONDA_PREFIX" if (folder / CONDA_LOCK).is_file() else "VIRTUAL_ENV"
    return Prefix(
        python=f"{binaries}/python",
        variables={"PATH": f"{binaries}:{path}" if path else binaries, kind: str(folder), **open_mpi.variables(folder)},
        folder=str(folder),
    )


def _warnings(folder: Path) -> tuple[str, ...]:
    """What the builder had to say about what it built."""
    try:
        return tuple((folder / WARNINGS).read_text().splitlines())
    except OSError:
        return ()


def users_own_elsewhere(spec: EnvironmentSpec) -> Prefix:
    """The user's own Python on machines that do not share our files: whether it is there is seen there.

    A path that leads to a Python of this machine may be no more than the default, the Python that submitted; the host's
    own takes its place where it has none of that path.
    """
    interpreter = spec.interpreter
    if not interpreter or (os.path.isabs(interpreter) and os.access(interpreter, os.X_OK)):
        return Prefix(python=PYTHON_THERE)
    return Prefix(python=interpreter)


def _users_own(spec: EnvironmentSpec) -> Prefix:
    interpreter = spec.interpreter or sys.executable
    if not os.path.isabs(interpreter):
        return Prefix(python=interpreter)
    if not os.access(interpreter, os.X_OK):
        raise EnvironmentException(
            f"the Python of this run is not there: {interpreter}",
            hint="With user_managed=True the script runs in a Python that exists on the target; check its path.",
        )
    return Prefix(python=interpreter)
