"""The packages of a conda environment on this machine, exported by conda."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trainmaster.job.errors import EnvironmentException, UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies

_PROGRAMS = ("conda", "mamba", "micromamba")
_SECONDS = 120


def export(environment: str | os.PathLike[str]) -> CondaDependencies:
    """The packages of a conda environment, by its name or by its folder."""
    name = os.fspath(environment) if isinstance(environment, os.PathLike) else environment
    if not isinstance(name, str) or not name.strip() or name.startswith("-"):
        raise UserErrorException(f"conda_environment_name must be a name or a folder, not {name!r}")
    program = find_conda(os.environ)
    command = [program, "env", "export", _no_builds(program), *_place(name)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentException(f"{program} cannot be run", cause=str(error)) from None
    if ended.returncode:
        raise EnvironmentException(
            f"conda environment {name!r} cannot be exported",
            cause=ended.stderr.strip()[-2000:],
            hint=f"'{Path(program).name} env list' shows all environments.",
        )
    return CondaDependencies.parse(ended.stdout, f"the export of conda environment {name!r}")


def find_conda(environ: Mapping[str, str]) -> str:
    """The path of conda, or of a compatible program."""
    told = environ.get("CONDA_EXE", "")
    if told and os.access(told, os.X_OK):
        return told
    for name in _PROGRAMS:
        found = shutil.which(name, path=environ.get("PATH"))
        if found:
            return found
    raise EnvironmentException(
        "conda, which lists the environment's packages, is not installed on this machine",
        cause=f"None of {', '.join(_PROGRAMS)} is on PATH, and CONDA_EXE names no program.",
        hint="Run 'conda env export --no-builds > environment.yml' on a machine that has it, and use "
        "Environment.from_conda_specification(name, 'environment.yml'); or set python.user_managed_dependencies and "
        "python.interpreter_path to run in it as it is.",
    )


def _no_builds(program: str) -> str:
    return "--no-build" if Path(program).name == "micromamba" else "--no-builds"


def _place(name: str) -> list[str]:
    # The same rule as conda's: a name has no slash.
    return ["--prefix", os.path.abspath(os.path.expanduser(name))] if "/" in name else ["--name", name]
