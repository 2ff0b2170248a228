"""`environment.json` in a built environment: what it was built from, when, and when it was last used."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.environments.prefix import WARNINGS
from trainmaster.environments.pythons import python_for
from trainmaster.environments.sources import mask_passwords
from trainmaster.job.errors import PythonNotFoundException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

_FACTS = "environment.json"


@dataclass(frozen=True)
class BuildRecord:
    """How an environment was built."""

    name: str
    """`<digest>.<n>`."""
    python: str
    built_at: float
    build_seconds: float
    specification: EnvironmentSpec
    """Without passwords."""
    version: int = 1


def write(folder: Path, spec: EnvironmentSpec, python: str, name: str, seconds: float) -> None:
    """Write the record before the folder gets its final name. Afterwards the file's time is the last use."""
    shown = replace(spec, pip_packages=tuple(map(mask_passwords, spec.pip_packages)))
    facts = BuildRecord(name, python, time.time(), round(seconds, 3), shown)
    (folder / _FACTS).write_text(json.dumps(to_plain(facts), indent=1))


def warn(folder: Path, text: str) -> None:
    """Print a warning in the build log, and show it to every run that uses the environment."""
    print(f"WARNING: {text}", flush=True)
    with open(folder / WARNINGS, "a") as file:
        file.write(f"{text}\n")


def read(folder: Path) -> BuildRecord | None:
    """Read the record; None if the folder is not an environment."""
    try:
        return from_plain(BuildRecord, json.loads((folder / _FACTS).read_text()))
    except (OSError, ValueError, PlainDataError):
        return None


def is_outdated(folder: Path, spec: EnvironmentSpec) -> bool:
    """Whether it was built with a substitute for the requested Python, which this machine has now."""
    if not spec.python_version or spec.newer_python or spec.lock:
        return False
    known = read(folder)
    if known is None or known.python == spec.python_version:
        return False
    try:
        python_for(spec)
    except PythonNotFoundException:
        return False
    return True


def mark_used(folder: Path) -> None:
    """Record that a run starts to use the environment. A read-only environment is not marked."""
    with contextlib.suppress(OSError):
        os.utime(folder / _FACTS)


def last_used(folder: Path) -> float:
    """When a run last started to use it, or when it was built."""
    try:
        return (folder / _FACTS).stat().st_mtime
    except OSError:
        return 0.0
