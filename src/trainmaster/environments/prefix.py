"""A ready environment, and how to tell that one is there. The seam between builders and everybody else.

Other builders (conda, frameworks) add a way to make the folder; what is ready and how a script uses it stays here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainmaster.environments.canonical import canonical
from trainmaster.errors import EnvironmentException
from trainmaster.folders import WorkspaceFolder
from trainmaster.job import EnvironmentSpec
from trainmaster.plain import to_plain

# Part of the digest: raised when the same specification would be built in another way.
_BUILD_FORMAT = 1


@dataclass(frozen=True)
class Prefix:
    """An environment a script can be started in."""

    python: str
    variables: Mapping[str, str] = field(default_factory=dict)


def digest(spec: EnvironmentSpec) -> str:
    """The name of what `spec` asks for: the same digest means the same prefix."""
    asked = replace(canonical(spec), python_version=python_version(spec))
    text = json.dumps([_BUILD_FORMAT, platform.machine(), to_plain(asked)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def python_version(spec: EnvironmentSpec) -> str:
    """Major.minor of the Python to build with."""
    return spec.python_version or f"{sys.version_info.major}.{sys.version_info.minor}"


def find(spec: EnvironmentSpec, workspace: WorkspaceFolder, path: str) -> Prefix | None:
    """The environment if it is ready: the user's own at once, a built one when its folder is there."""
    if spec.user_managed:
        return _users_own(spec)
    folder = workspace.environments / digest(spec)
    return built(folder, path) if is_ready(folder) else None


def is_ready(folder: Path) -> bool:
    """Whether a built environment can be used: it appears by one rename, but the Python it stands on may go away."""
    return os.access(folder / "bin" / "python", os.X_OK)


def check_buildable(spec: EnvironmentSpec) -> None:
    """Refuses what no builder of this release can make."""
    if spec.conda_packages:
        raise EnvironmentException(
            f"conda packages are not in this release: {', '.join(spec.conda_packages)}",
            hint="Give them as pip_packages, or run in an environment of your own with user_managed=True.",
        )


def built(folder: Path, path: str) -> Prefix:
    """The prefix in `folder`, with its programs first on `path`."""
    binaries = f"{folder}/bin"
    return Prefix(
        python=f"{binaries}/python",
        variables={"PATH": f"{binaries}:{path}" if path else binaries, "VIRTUAL_ENV": str(folder)},
    )


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
