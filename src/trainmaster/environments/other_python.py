"""Finds another Python on this machine if packages cannot be installed for the intended one.

Old packages have builds only for Pythons of their time. If no Python was requested and the submitting one has no builds
of the packages, an older Python is used. If the requested Python is not on this machine, the nearest newer one is used
for which the packages can be installed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.environments import lock, packages, pythons
from trainmaster.environments.conda_names import stand_in
from trainmaster.environments.frameworks import pins_beside
from trainmaster.environments.hints import is_about_python
from trainmaster.environments.requirement import is_open, package_name
from trainmaster.environments.resolver_process import ResolverProcess
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException, PythonNotFoundException
from trainmaster.shared.job_spec import EnvironmentSpec

_FAILED = re.compile(r"Failed to build `(?P<name>[A-Za-z0-9][\w.-]*)")
# The last releases with the features that packages of v1's time use; for the Pythons of v1.
_OF_THAT_TIME = ("numpy<1.24", "scipy<1.9", "protobuf<3.21")
_NEWEST_OF_V1 = (3, 9)


@dataclass(frozen=True)
class Fit:
    """A Python that fits the packages, and constraints for their dependencies."""

    python: str
    constraints: tuple[str, ...] = ()
    reason: str = ""
    """Why the intended Python is not used."""


def find_fit(spec: EnvironmentSpec, error: EnvironmentException, tools: Tools) -> Fit:
    """Find another Python for which all packages can be installed; raise the error, with the attempts, if none fits."""
    compiled = find_failed_builds(_error_text(error))
    reason = _reason(spec, error)
    if not reason:
        raise error
    versions = _candidates(spec)
    if versions:
        print(f"{reason}: trying Python {', '.join(versions)}", flush=True)
    fit = _find_first(spec, versions, [":all:"], tools) if spec.python_version else None
    fit = fit or _find_first(spec, versions, compiled, tools)
    if fit is None:
        raise _add_attempts(spec, error, versions, tools)
    return replace(fit, reason=reason)


def _reason(spec: EnvironmentSpec, error: EnvironmentException) -> str:
    """Why another Python may help; empty if it would not, or if the user insists on this one."""
    if isinstance(error, PythonNotFoundException):
        remedy = f"to use it, run 'pyenv install {spec.python_version}'"
        return f"{error.headline} ({remedy})" if spec.python_version else ""
    about_python = find_failed_builds(_error_text(error)) or is_about_python(_error_text(error))
    wants_this_one = spec.python_version and not spec.newer_python
    if not about_python or wants_this_one or spec.container is not None:
        return ""
    return f"the packages have no builds for Python {spec.python_version or pythons.running_version()}"


def _error_text(error: EnvironmentException) -> str:
    return f"{error.cause}\n{error.hint}"


def _candidates(spec: EnvironmentSpec) -> list[str]:
    """The Pythons to try in order: newer ones, nearest first; or, if none was requested, older ones, newest first."""
    if spec.python_version:
        return pythons.newer_for(spec)
    return pythons.older_than(pythons.running_version(), list(pythons.all_pythons()))


def _find_first(spec: EnvironmentSpec, versions: Sequence[str], only_built: Sequence[str], tools: Tools) -> Fit | None:
    """The first of `versions` for which uv finds all packages, those of `only_built` as wheels."""
    for version in versions:
        for fit in dict.fromkeys((Fit(version, limits_for(version, spec)), Fit(version))):
            if _ask(spec, fit, only_built, tools)[0] is not None:
                return fit
    return None


def _add_attempts(
    spec: EnvironmentSpec, error: EnvironmentException, versions: Sequence[str], tools: Tools
) -> EnvironmentException:
    hints = [error.hint]
    if versions:
        hints.append(f"The packages cannot be installed for Python {', '.join(versions)} either.")
    if not spec.python_version:
        hints.append("Install a Python as old as the packages, for example with 'uv python install 3.8'.")
    cause = error.cause
    if versions and isinstance(error, PythonNotFoundException):
        # The packages themselves may be the problem.
        nearest = lock.failure("resolved", _ask(spec, Fit(versions[0]), (), tools)[1])
        cause = f"{cause}\nWith Python {versions[0]}:\n{nearest.cause}"
    return type(error)(error.headline, cause=cause, hint=" ".join(hints))


def limits_for(python: str, spec: EnvironmentSpec) -> tuple[str, ...]:
    """Constraints for packages without a version on old Pythons; those of a framework's release come first.

    >>> limits_for("3.8", EnvironmentSpec(pip_packages=("numpy==1.18.5", "scipy")))
    ('scipy<1.9', 'protobuf<3.21')
    >>> limits_for("3.10", EnvironmentSpec())
    ()
    >>> limits_for("3.7", EnvironmentSpec(pip_packages=("torch==1.4.0",)))
    ('numpy<1.20', 'scipy<1.9', 'protobuf<3.21')
    """
    if _order(python) > _NEWEST_OF_V1:
        return ()
    named = [line for line in (*spec.pip_packages, *stand_in(spec.conda_packages)[0]) if not line.startswith("-")]
    of_release = tuple(pin for pin in pins_beside(named) if package_name(pin) != pin)
    taken = {package_name(each) for each in (*named, *of_release) if not is_open(each)}
    return (*of_release, *(limit for limit in _OF_THAT_TIME if package_name(limit) not in taken))


def find_failed_builds(said: str) -> list[str]:
    """List the packages that could not be compiled.

    >>> find_failed_builds("error: Failed to build `scikit-learn==0.22.1`")
    ['scikit-learn']
    """
    return sorted({found["name"] for found in _FAILED.finditer(said)})


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _ask(spec: EnvironmentSpec, fit: Fit, only_built: Sequence[str], tools: Tools) -> tuple[str | None, str]:
    """Resolve all packages for a Python, those in `only_built` as wheels; return the lock, or None and uv's output."""
    packages_of_pip = (*spec.pip_packages, *stand_in(spec.conda_packages)[0])
    spec = replace(spec, python_version=fit.python, conda_packages=(), pip_packages=packages_of_pip)
    wanted = packages.plan_packages(spec, pythons.python_for(spec), tools, fit.constraints)
    options = [word for name in only_built for word in ("--only-binary", name)]
    request = replace(wanted.request, options=(*wanted.request.options, *options))
    if not request.requirements:
        return "", ""
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as folder:
        allowed = Path(folder, lock.ALLOWED_NAME)
        allowed.write_text("".join(f"{each}\n" for each in fit.constraints))
        return lock.resolve(ResolverProcess(*lock.question(request, wanted.python, wanted.sources, allowed)))
