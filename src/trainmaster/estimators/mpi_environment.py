"""What MPI adds to an environment: Open MPI, and Horovod where the packages name it."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.curated import horovod_for
from trainmaster.environments.frameworks import PYTORCH, TENSORFLOW, release_in
from trainmaster.environments.requirement import package_name, parse
from trainmaster.job import Distribution, EnvironmentSpec

NEWEST_HOROVOD = "0.28.1"


def for_distribution(spec: EnvironmentSpec, distribution: Distribution, name: str = "") -> EnvironmentSpec:
    """`spec` with Open MPI if the processes find each other through it; with Horovod, too, if Azure's environment of
    that name had it.

    Horovod cannot be installed as it is: it is compiled against Open MPI and the framework, so that it leaves the list
    of packages for a place of its own.
    """
    if spec.user_managed:
        return spec
    is_mpi = distribution.kind == "mpi"
    horovod = spec.horovod or (horovod_for(name) if is_mpi else "")
    named = [package for package in spec.pip_packages if package_name(package) == "horovod"]
    return replace(
        spec,
        open_mpi=spec.open_mpi or bool(named) or is_mpi,
        horovod=_release(named[-1], spec.pip_packages) if named else horovod,
        pip_packages=tuple(package for package in spec.pip_packages if package not in named),
    )


def _release(requirement: str, packages: tuple[str, ...]) -> str:
    part = parse(requirement)
    exact = [clause[2:] for clause in part.clauses if clause.startswith("==")] if part else []
    framework = release_in(PYTORCH, packages) or release_in(TENSORFLOW, packages)
    return exact[0] if exact else framework.era.horovod if framework else NEWEST_HOROVOD
