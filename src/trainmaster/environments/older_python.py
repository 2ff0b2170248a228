"""Packages of v1's time have builds for the Pythons of that time, and v1's own default was 3.6. So where nobody asked
for a Python and the one that submits has no builds of them, an older one of this machine may do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainmaster.environments import lock, packages, pythons
from trainmaster.environments.ahead import Ahead
from trainmaster.environments.conda_names import stand_in
from trainmaster.environments.hints import is_about_python
from trainmaster.environments.tools import Tools
from trainmaster.errors import EnvironmentException
from trainmaster.job import EnvironmentSpec

_FAILED = re.compile(r"Failed to build `(?P<name>[A-Za-z0-9][\w.-]*)")


def that_fits(spec: EnvironmentSpec, error: EnvironmentException, tools: Tools) -> str:
    """The newest Python below the running one for which all packages can be had, or the error with what was tried."""
    text = f"{error.cause}\n{error.hint}"
    compiled = built_from_source(text)
    if spec.python_version or spec.container is not None or not (compiled or is_about_python(text)):
        raise error
    older = older_than(pythons.running_version(), list(pythons.all_pythons()))
    for version in older:
        if _can_be_had(replace(spec, python_version=version), compiled, tools):
            return version
    tried = f"So it is with Python {', '.join(older)} of this machine. " if older else ""
    raise EnvironmentException(
        error.headline,
        cause=error.cause,
        hint=f"{error.hint} {tried}'uv python install 3.8', for instance, gets a Python of the package's time; "
        "it is then taken by itself.",
    )


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
    order = {version: tuple(map(int, version.split("."))) for version in [*versions, running]}
    return sorted((each for each in versions if order[each] < order[running]), key=order.__getitem__, reverse=True)


def _can_be_had(spec: EnvironmentSpec, compiled: Sequence[str], tools: Tools) -> bool:
    """Whether uv finds releases of all packages for a Python, with builds of those that could not be compiled."""
    spec = replace(spec, conda_packages=(), pip_packages=(*spec.pip_packages, *stand_in(spec.conda_packages)[0]))
    wanted = packages.wanted(spec, pythons.find_python(spec.python_version), tools)
    options = [word for name in compiled for word in ("--only-binary", name)]
    request = replace(wanted.request, options=(*wanted.request.options, *options))
    found, _ = lock.resolve(Ahead(*lock.question(request, wanted.python, wanted.sources)))
    return found is not None
