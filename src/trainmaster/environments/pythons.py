"""The Pythons of this machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from trainmaster.errors import EnvironmentException


def find_python(version: str) -> str:
    """The path of a Python `version` (major.minor): the running one, one on PATH, or one of pyenv's."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return os.path.realpath(sys.executable)
    found = all_pythons().get(version)
    if found is None:
        raise EnvironmentException(
            f"no Python {version} is on this machine",
            cause=f"Found: {', '.join(sorted(all_pythons())) or 'none'}.",
            hint=f"Install Python {version} (for example with pyenv), or ask for another python_version.",
        )
    return found


def all_pythons() -> dict[str, str]:
    """Version (major.minor) to path, for every CPython from 3.6 on that is found."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": os.path.realpath(sys.executable)}
    for minor in range(6, 20):
        version = f"3.{minor}"
        path = _of_pyenv(version) or shutil.which(f"python{version}")
        # pyenv's shims answer for every version but run only the chosen ones.
        if path and "/shims/" not in path:
            found.setdefault(version, path)
    return found


def _of_pyenv(version: str) -> str | None:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = sorted(root.glob(f"versions/{version}.*/bin/python"))
    return str(candidates[-1]) if candidates else None
