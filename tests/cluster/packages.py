"""Debian packages that tests need: installed on a machine that lacks them, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.left_out import leave_out


def ensure(missing: Callable[[], Sequence[str]]) -> str:
    """Installs the packages that `missing` names. The reason why that failed, or an empty text.

    Tests that need packages are left out where only another user can install them.
    """
    with open(Path(tempfile.gettempdir()) / f"trainmaster-tests-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = missing()
        return _install(wanted) if wanted else ""


def _install(packages: Sequence[str]) -> str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        leave_out(f"needs these Debian packages: {' '.join(packages)}")
    # In runlevel 1 no service is started after its installation.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    words = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    # The second time on a machine that has never asked what packages there are.
    for attempt in (words, ["apt-get", "update"], words):
        done = subprocess.run(attempt, env=environment, capture_output=True, text=True, check=False)
        if attempt is words and done.returncode == 0:
            return ""
    return f"'{' '.join(words)}' failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
