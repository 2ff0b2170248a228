"""The first stage: a folder with a Python and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainmaster.environments.conda_names import needs_conda, stand_in
from trainmaster.environments.prefix import python_version
from trainmaster.environments.pythons import find_python
from trainmaster.environments.tools import Tools
from trainmaster.job import EnvironmentSpec


def make(spec: EnvironmentSpec, folder: Path, final: Path, tools: Tools) -> EnvironmentSpec:
    """A prefix of conda packages, or a virtual environment that may be moved; returns what the next stages are for.

    `folder` is where it is made, `final` where it will lie.
    """
    if needs_conda(spec.conda_packages):
        from trainmaster.environments import conda

        spec = conda.make(spec, folder, final, tools)
        if spec.conda_packages:
            return spec
    instead = stand_in(spec.conda_packages)[0]
    spec = replace(spec, conda_packages=(), pip_packages=(*spec.pip_packages, *instead))
    begin(spec, folder, tools)()
    return spec


def begin(spec: EnvironmentSpec, folder: Path, tools: Tools) -> Callable[[], None]:
    """Begins to make a virtual environment that may be moved; what is returned waits until it is there."""
    python = find_python(python_version(spec))
    shown = f"uv venv --python {python}"
    print(f"$ {shown}", flush=True)
    command = ["venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(folder)]
    started = tools.begin(tools.uv_command(command), tools.uv_environ)

    def finish() -> None:
        code, said = started.finish(show=True)
        if code:
            raise tools.failure(shown, code, said)

    return finish
