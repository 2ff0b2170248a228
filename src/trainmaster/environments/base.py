"""The first stage of a build: a folder with a Python and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trainmaster.environments import build_record
from trainmaster.environments.pythons import python_for
from trainmaster.environments.tools import Started, Tools
from trainmaster.shared.job_spec import EnvironmentSpec


def make(spec: EnvironmentSpec, folder: Path, final: Path, tools: Tools) -> EnvironmentSpec:
    """Create a prefix of conda packages or a relocatable virtual environment; return the spec for the next stages.

    It is created in `folder` and later renamed to `final`.
    """
    # Only environments with conda packages need these.
    from trainmaster.environments.conda_names import needs_conda, stand_in
    from trainmaster.environments.frameworks import pins_beside

    asked = spec.conda_packages
    if needs_conda(asked):
        from trainmaster.environments import conda

        spec = conda.make(spec, folder, final, tools)
        if spec.conda_packages:
            return spec
    instead = stand_in(spec.conda_packages)[0]
    packages = (*spec.pip_packages, *instead)
    if needs_conda(asked):
        # Conda would have installed matching releases of the dependencies.
        packages = (*packages, *pins_beside([each for each in packages if not each.startswith("-")]))
    spec = replace(spec, conda_packages=(), pip_packages=packages)
    begin(spec, folder, tools).finish()
    if needs_conda(asked):
        build_record.warn(folder, f"conda packages were installed by pip instead: {', '.join(asked)}")
    return spec


def begin(spec: EnvironmentSpec, folder: Path, tools: Tools) -> VenvCreation:
    """Start creating a relocatable virtual environment."""
    python = python_for(spec)
    print(f"$ uv venv --python {python}", flush=True)
    command = ["venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(folder)]
    return VenvCreation(folder, tools, tools.begin(tools.uv_command(command), tools.uv_environ))


class VenvCreation:
    """A virtual environment that uv is creating."""

    def __init__(self, folder: Path, tools: Tools, venv: Started) -> None:
        self._folder = folder
        self._tools = tools
        self._venv: Started | None = venv
        self._asked: Started | None = None

    def finish(self) -> None:
        """Wait until the virtual environment is complete."""
        venv, self._venv = self._venv, None
        code, said = venv.finish(show=True) if venv else (0, [])
        if code:
            raise self._tools.failure("uv venv", code, said)

    def ask(self) -> None:
        """Let uv inspect the new Python. This takes a while, and uv caches the result."""
        self.finish()
        command = self._tools.uv_command(["python", "find", "--no-project", f"{self._folder}/bin/python"])
        self._asked = self._tools.begin(command, self._tools.uv_environ)

    def close(self) -> None:
        """Wait for whatever is still running."""
        self.finish()
        asked, self._asked = self._asked, None
        if asked:
            asked.finish()
