"""What a machine has that Trainmaster can use: one function for each thing that `trainmaster doctor` shows."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["found", "missing", "wrong"]

_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was found, and for a missing thing what it is needed for and how to install it."""

    name: str
    state: State
    found: str
    purpose: str = ""
    hint: str = ""
    essential: bool = False


def examine_machine(environ: Mapping[str, str]) -> list[Finding]:
    """What this machine has, the essential first."""
    return [
        system(),
        uv(),
        pythons(),
        packages(environ),
        program("compiler", ("cc", "gcc", "clang"), "Builds packages that come as source, Horovod among them.",
                "Debian, Ubuntu: apt install build-essential."),
        program("make", ("make", "gmake"), "Builds packages that come as source.",
                "Debian, Ubuntu: apt install build-essential."),
        open_mpi(environ),
        git(),
        gpus(),
        container_engine(environ),
        cgroup(),
        limits(),
    ]  # fmt: skip


def system() -> Finding:
    """Linux with /proc, where processes are found."""
    text = " ".join(os.uname()[index] for index in (0, 2, 4))
    works = os.path.exists(f"/proc/{os.getpid()}/stat")
    return Finding("system", "found" if works else "wrong", text, "Processes are found in /proc.", "Use Linux.", True)


def uv() -> Finding:
    """The uv that comes with Trainmaster."""
    purpose, hint = "Builds environments.", "pip install uv"
    try:
        from uv import find_uv_bin

        path = os.fsdecode(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return Finding("uv", "missing", "", purpose, hint, essential=True)
    version = first_line_of([path, "--version"])
    state: State = "found" if version else "wrong"
    return Finding("uv", state, version or f"{path} does not run", purpose, hint, essential=True)


def pythons() -> Finding:
    """The Pythons that environments can be built with."""
    from trainmaster.environments.pythons import all_pythons

    found = all_pythons()
    ordered = sorted(found.items(), key=lambda item: tuple(map(int, item[0].split("."))))
    return Finding("Pythons", "found", "\n".join(f"{version:5} {path}" for version, path in ordered))


def packages(environ: Mapping[str, str]) -> Finding:
    """Where packages are installed from, without passwords."""
    from trainmaster.environments.sources import mask_passwords, pip_settings

    settings = pip_settings(environ)
    names = ("index-url", "extra-index-url", "find-links", "no-index", "cert")
    lines = [f"{name}: {mask_passwords(' '.join(settings[name].split()))}" for name in names if settings.get(name)]
    return Finding("packages", "found", "\n".join(lines) or "https://pypi.org/simple (nothing else is configured)")


def program(name: str, commands: tuple[str, ...], purpose: str, hint: str) -> Finding:
    """The first of several programs that is on the PATH."""
    path = next((found for command in commands if (found := shutil.which(command))), None)
    if path is None:
        return Finding(name, "missing", "not found", purpose, hint)
    version = first_line_of([path, "--version"])
    return Finding(name, "found", f"{version} ({path})" if version else path)


def git() -> Finding:
    """git, which is asked when a run is submitted."""
    return program(
        "git", ("git",), "Notes with each run which commit it came from.", "Debian, Ubuntu: apt install git."
    )


def open_mpi(environ: Mapping[str, str]) -> Finding:
    """Which Open MPI new environments use, and which one the system has."""
    from trainmaster.environments import open_mpi as mpi
    from trainmaster.job.errors import UserErrorException

    purpose = "Starts the processes of distributed MPI and Horovod runs."
    system = mpi.find_in_system(environ.get("PATH", os.defpath))
    present = f"the system's {system.version} ({system.programs})" if system else "the system has none"
    try:
        wheel = mpi.comes_as_wheel(environ)
    except UserErrorException as error:
        return Finding("Open MPI", "wrong", error.headline, purpose, error.hint)
    if wheel:
        text = f"{mpi.CURRENT} is installed into each environment that needs it\n{present}"
        return Finding("Open MPI", "found", f"{text}, used with {mpi.VARIABLE}=system" if system else text)
    if system:
        return Finding("Open MPI", "found", f"{present}, because of {mpi.VARIABLE}=system")
    hint = f"Unset {mpi.VARIABLE}; or Debian, Ubuntu: apt install libopenmpi-dev openmpi-bin."
    return Finding("Open MPI", "wrong", f"{mpi.VARIABLE}=system, but {present}", purpose, hint)


def gpus() -> Finding:
    """The NVIDIA GPUs and their driver."""
    from trainmaster.shared.hardware import gpus as find_gpus

    count = len(find_gpus())
    purpose, hint = "Runs on the GPU.", "Install the NVIDIA driver, if this machine has a GPU."
    if not count:
        return Finding("GPUs", "missing", "none", purpose, hint)
    driver = _driver()
    state: State = "found" if driver else "wrong"
    return Finding("GPUs", state, f"{count}, {driver or 'but the driver does not answer'}", purpose, hint)


def _driver() -> str:
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return first_line_of(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    version = next((word for word in words if word[0].isdigit() and "." in word), "")
    return f"driver {version}".strip()


def container_engine(environ: Mapping[str, str]) -> Finding:
    """The container engine, which is started to see whether it works."""
    from trainmaster.environments.containers import SETTING, find_engine

    name = "containers"
    purpose = "Runs scripts in an image (custom_docker_image). Nothing else needs one."
    engine, problems = find_engine(environ)
    if engine is not None:
        chosen = f", because of {SETTING}" if environ.get(SETTING) else ""
        return Finding(name, "found", f"{engine.name} {engine.version} ({engine.program}){chosen}")
    hint = "Debian, Ubuntu: apt install podman. Or docker, or apptainer."
    installed = [part for part in problems.split("; ") if not part.endswith(": not installed")]
    if installed:
        return Finding(name, "wrong", "\n".join(installed), purpose, "Fix this problem, or use another engine.")
    return Finding(name, "missing", "no docker, podman or apptainer", purpose, hint)


def cgroup() -> Finding:
    """Whether runs can have a cgroup, by creating one."""
    from trainmaster.job.agent import cgroup as node_cgroup

    path = node_cgroup.path_for(f"doctor-{os.getpid()}", 0)
    if path and node_cgroup.make(path):
        node_cgroup.remove(path)
        return Finding("cgroup v2", "found", "usable")
    return Finding(
        "cgroup v2",
        "missing",
        "not writable here",
        "Ends all processes of a run at once. Without it they are found one by one, which works too.",
        "Start Trainmaster in a delegated cgroup, for example with systemd-run --user --scope -p Delegate=yes.",
    )


def limits() -> Finding:
    """Whether limits of nodes hold here, by trying what a run does."""
    from trainmaster.job.agent.limits import CPU, MEMORY, Limits
    from trainmaster.shared.node_limits import find_enforced, why_not

    enforced = find_enforced(Limits(1, 1))
    if len(enforced) == 2:
        return Finding("limits", "found", "CPUs and memory of nodes are enforced")
    missing = [name for name in (CPU, MEMORY) if name not in enforced]
    found = {CPU: "CPUs by affinity only", MEMORY: "memory is not enforced"}
    return Finding(
        "limits",
        "missing",
        f"{', '.join(found[name] for name in missing)}: {why_not(missing[-1])}",
        "Holds nodes of a local target to their CPUs (--limit-cpus) and memory (--memory-per-node).",
        "Start Trainmaster in a delegated cgroup v2, for example with systemd-run --user --scope -p Delegate=yes.",
    )


def first_line_of(command: list[str]) -> str:
    """The first line that a program prints; empty if it cannot run or fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.decode(errors="replace").splitlines() if done.returncode == 0 else []
    return next((line.strip() for line in lines if line.strip()), "")
