"""Virtual environments with packages of others, for tests: kept in a cache folder of the user, complete or absent."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from trainmaster.environments.tools import Tools


def make_environment(name: str, *packages: str) -> Path:
    """The Python of an environment that has these packages, installed once by uv with pip's settings of the user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmaster-tests"
    cache.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256("\n".join((sys.version, *packages)).encode()).hexdigest()[:12]
    place = cache / f"{name}-{digest}"
    complete = place / "complete"
    with open(cache / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            tools = Tools(dict(os.environ))
            python = os.path.realpath(sys.executable)
            _run(tools, ["venv", "--quiet", "--no-project", "--clear", "--python", python, str(place)])
            _run(tools, ["pip", "install", "--python", f"{place}/bin/python", *tools.source_options, *packages])
            complete.touch()
    return place / "bin" / "python"


def _run(tools: Tools, arguments: list[str]) -> None:
    done = subprocess.run(tools.uv_command(arguments), capture_output=True, text=True, env=tools.uv_environ)
    assert done.returncode == 0, f"uv {' '.join(arguments)} failed: {done.stderr[-2000:]}"
