"""The first stage: a folder with a Python and nothing else."""

from __future__ import annotations

from pathlib import Path

from trainmaster.environments.prefix import python_version
from trainmaster.environments.pythons import find_python
from trainmaster.environments.tools import Tools
from trainmaster.job import EnvironmentSpec


def make(spec: EnvironmentSpec, folder: Path, tools: Tools) -> None:
    """A virtual environment that may be moved."""
    python = find_python(python_version(spec))
    tools.uv(
        ["venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(folder)],
        f"venv --python {python}",
    )
