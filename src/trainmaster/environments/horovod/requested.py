"""Horovod among the pip packages of an environment: it is compiled for the framework instead of installed by pip."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.frameworks import PYTORCH, TENSORFLOW, release_in
from trainmaster.environments.requirement import package_name, parse
from trainmaster.shared.job_spec import EnvironmentSpec

NEWEST = "0.28.1"


def compile_named(spec: EnvironmentSpec) -> EnvironmentSpec:
    """Move Horovod from the pip packages to what is compiled, and add Open MPI.

    >>> spec = compile_named(EnvironmentSpec(pip_packages=("torch==1.4.0", "horovod")))
    >>> spec.pip_packages, spec.horovod, spec.open_mpi
    (('torch==1.4.0',), '0.18.1', True)
    """
    named = [package for package in spec.pip_packages if package_name(package) == "horovod"]
    if spec.user_managed or not named:
        return spec
    return replace(
        spec,
        open_mpi=True,
        horovod=_release(named[-1], spec.pip_packages),
        pip_packages=tuple(package for package in spec.pip_packages if package not in named),
    )


def _release(requirement: str, packages: tuple[str, ...]) -> str:
    part = parse(requirement)
    exact = [clause[2:] for clause in part.clauses if clause.startswith("==")] if part else []
    framework = release_in(PYTORCH, packages) or release_in(TENSORFLOW, packages)
    return exact[0] if exact else framework.era.horovod if framework else NEWEST
