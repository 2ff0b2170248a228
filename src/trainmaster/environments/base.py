"""The first stage: a folder with a Python and nothing else."""

from __future__ import annotations

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
    python = find_python(python_version(spec))
    tools.uv(
        ["venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(folder)],
        f"venv --python {python}",
    )
    return spec
