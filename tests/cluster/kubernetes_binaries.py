"""The binaries of the Kubernetes cluster for tests: compiled once per machine, into a cache folder of the user."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.left_out import leave_out, require_root

SCRIPT = Path(__file__).with_name("minik8s.sh")
TAIL = 3000
"""Characters of a log that an error shows."""
BUILD_SECONDS = 3600
"""How long building may take, on a machine that runs other tests meanwhile."""


class CannotHaveCluster(AssertionError):
    """The cluster did not start, though the machine could run it."""


def require_machine() -> None:
    """Leaves out the tests on machines that cannot run a cluster."""
    require_root("for Kubernetes nodes in namespaces")
    if fault := fault_of_machine():
        leave_out(fault)


def fault_of_machine() -> str:
    """What this machine lacks for a cluster, or an empty text."""
    if shutil.which("apt-get") is None or "VERSION_CODENAME=bookworm" not in Path("/etc/os-release").read_text():
        return "needs Debian 12, whose packages the Kubernetes cluster is made of"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "needs the overlay file system, for containers of the Kubernetes cluster"
    return ""


def cache() -> Path:
    """Where the binaries are kept."""
    found = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(found) / "trainmaster-tests" / "kubernetes"


def binaries() -> Path:
    """The folder with the binaries; `complete` is in it when they are all there."""
    return cache() / "v1.20.2-1"


def build() -> None:
    """Compile Kubernetes, unless it is in the cache; waits for another process that does it."""
    if (binaries() / "complete").exists():
        return
    builder = start_build()
    code = builder.wait(BUILD_SECONDS)
    if code or not (binaries() / "complete").exists():
        raise CannotHaveCluster(f"Kubernetes was not built ({code}):\n{build_log().read_text()[-TAIL:]}")


def build_log() -> Path:
    """What building says."""
    return cache() / "build.log"


def build_meanwhile() -> None:
    """Compile Kubernetes in the background while other tests run, if this machine needs it."""
    if os.geteuid() == 0 and not fault_of_machine() and not (binaries() / "complete").exists():
        # Not much less than others, or it would hardly begin before tests wait for it.
        start_build(niceness=5)


def start_build(niceness: int = 0) -> subprocess.Popen[bytes]:
    """Compile Kubernetes in the background. The build ends with this process, and the next one goes on from there."""
    cache().mkdir(parents=True, exist_ok=True)
    words = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    with open(build_log(), "ab") as log:
        return subprocess.Popen(
            [*words, "nice", "-n", str(niceness), "bash", str(SCRIPT), "build"],
            env={**os.environ, "MINIK8S_CACHE": str(cache())},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
