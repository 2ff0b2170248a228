"""`environment.json` in a built environment: of what it was built, when, and when it was last used."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.environments.prefix import WARNINGS
from trainmaster.environments.pythons import python_for
from trainmaster.environments.sources import masked
from trainmaster.job.errors import PythonNotFoundException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

_FACTS = "environment.json"


@dataclass(frozen=True)
class Facts:
    """What is known of a built environment."""

    name: str
    """`<digest>.<n>`."""
    python: str
    built_at: float
    build_seconds: float
    specification: EnvironmentSpec
    """Without passwords."""
    version: int = 1


def write(folder: Path, spec: EnvironmentSpec, python: str, name: str, seconds: float) -> None:
    """Written before the folder gets its name; the file's time is that of the last use from then on."""
    shown = replace(spec, pip_packages=tuple(map(masked, spec.pip_packages)))
    facts = Facts(name, python, time.time(), round(seconds, 3), shown)
    (folder / _FACTS).write_text(json.dumps(to_plain(facts), indent=1))


def warn(folder: Path, text: str) -> None:
    """Says it in the build's log, and to every run in the environment."""
    print(f"WARNING: {text}", flush=True)
    with open(folder / WARNINGS, "a") as file:
        file.write(f"{text}\n")


def read(folder: Path) -> Facts | None:
    """The facts, if the folder is an environment."""
    try:
        return from_plain(Facts, json.loads((folder / _FACTS).read_text()))
    except (OSError, ValueError, PlainDataError):
        return None


def is_outdated(folder: Path, spec: EnvironmentSpec) -> bool:
    """Whether another Python stands in it for the one that `spec` names, which is on this machine by now."""
    if not spec.python_version or spec.newer_python:
        return False
    known = read(folder)
    if known is None or known.python == spec.python_version:
        return False
    try:
        python_for(spec)
    except PythonNotFoundException:
        return False
    return True


def used_now(folder: Path) -> None:
    """Remembers that a run begins with it; where it may only be read, nobody needs to know."""
    with contextlib.suppress(OSError):
        os.utime(folder / _FACTS)


def last_used(folder: Path) -> float:
    """When a run last began with it, or when it was built."""
    try:
        return (folder / _FACTS).stat().st_mtime
    except OSError:
        return 0.0
