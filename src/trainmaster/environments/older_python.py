"""Packages of v1's time have builds for the Pythons of that time, and v1's own default was 3.6. So where nobody asked
for a Python and the one that submits has no builds of them, an older one of this machine may do.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.environments import lock, packages, pythons
from trainmaster.environments.ahead import Ahead
from trainmaster.environments.conda_names import stand_in
from trainmaster.environments.hints import is_about_python
from trainmaster.environments.requirement import package_name
from trainmaster.environments.tools import Tools
from trainmaster.errors import EnvironmentException
from trainmaster.job import EnvironmentSpec

_FAILED = re.compile(r"Failed to build `(?P<name>[A-Za-z0-9][\w.-]*)")
# The last releases with what packages of v1's time still used; for Pythons that v1 had.
_OF_THAT_TIME = ("numpy<1.24", "scipy<1.9", "protobuf<3.21")
_NEWEST_OF_V1 = (3, 9)


@dataclass(frozen=True)
class Fit:
    """A Python for packages of another time, and limits for what these bring along."""

    python: str
    constraints: tuple[str, ...] = ()


def that_fits(spec: EnvironmentSpec, error: EnvironmentException, tools: Tools) -> Fit:
    """The newest Python below the running one for which all packages can be had, or the error with what was tried."""
    text = f"{error.cause}\n{error.hint}"
    compiled = built_from_source(text)
    if spec.python_version or spec.container is not None or not (compiled or is_about_python(text)):
        raise error
    older = older_than(pythons.running_version(), list(pythons.all_pythons()))
    if older:
        print(
            f"the packages cannot be had for Python {pythons.running_version()}: trying {', '.join(older)}", flush=True
        )
    for version in older:
        for fit in dict.fromkeys((Fit(version, limits_for(version, spec)), Fit(version))):
            if _can_be_had(spec, fit, compiled, tools):
                return fit
    tried = f"So it is with Python {', '.join(older)} of this machine. " if older else ""
    raise EnvironmentException(
        error.headline,
        cause=error.cause,
        hint=f"{error.hint} {tried}'uv python install 3.8', for instance, gets a Python of the package's time; "
        "it is then taken by itself.",
    )


def limits_for(python: str, spec: EnvironmentSpec) -> tuple[str, ...]:
    """For Pythons of v1's time: limits for packages that nobody named.

    >>> limits_for("3.8", EnvironmentSpec(pip_packages=("numpy==1.18.5",))), limits_for("3.10", EnvironmentSpec())
    (('scipy<1.9', 'protobuf<3.21'), ())
    """
    if _order(python) > _NEWEST_OF_V1:
        return ()
    named = {package_name(each) for each in (*spec.pip_packages, *stand_in(spec.conda_packages)[0])}
    return tuple(limit for limit in _OF_THAT_TIME if package_name(limit) not in named)


def built_from_source(said: str) -> list[str]:
    """The packages that could not be compiled.

    >>> built_from_source("error: Failed to build `scikit-learn==0.22.1`")
    ['scikit-learn']
    """
    return sorted({found["name"] for found in _FAILED.finditer(said)})


def older_than(running: str, versions: Sequence[str]) -> list[str]:
    """Those below the running one, newest first.

    >>> older_than("3.11", ["3.6", "3.9", "3.10", "3.11", "3.12"])
    ['3.10', '3.9', '3.6']
    """
    return sorted((each for each in versions if _order(each) < _order(running)), key=_order, reverse=True)


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _can_be_had(spec: EnvironmentSpec, fit: Fit, compiled: Sequence[str], tools: Tools) -> bool:
    """Whether uv finds releases of all packages for a Python, with builds of those that could not be compiled."""
    packages_of_pip = (*spec.pip_packages, *stand_in(spec.conda_packages)[0])
    spec = replace(spec, python_version=fit.python, conda_packages=(), pip_packages=packages_of_pip)
    wanted = packages.wanted(spec, pythons.find_python(fit.python), tools, fit.constraints)
    options = [word for name in compiled for word in ("--only-binary", name)]
    request = replace(wanted.request, options=(*wanted.request.options, *options))
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as folder:
        allowed = Path(folder, lock.ALLOWED_NAME)
        allowed.write_text("".join(f"{each}\n" for each in fit.constraints))
        found, _ = lock.resolve(Ahead(*lock.question(request, wanted.python, wanted.sources, allowed)))
    return found is not None
