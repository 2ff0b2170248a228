"""The environment of a service: the requested packages, and those that the scoring server needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from trainmaster.environments.requirement import is_open, package_name, parse
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.notices import warn

SERVER_PACKAGES = ("uvicorn>=0.22,<1", "httptools>=0.5", "uvloop>=0.17", "orjson>=3.8")
"""The same as in the extra `serve`."""

_OLDEST = (3, 7)
_OLDEST_VERSION = "3.7"
_IN_MODEL_FILES = frozenset(("joblib", "lightgbm", "numpy", "pandas", "scikit-learn", "scipy", "xgboost"))
"""Packages whose objects are pickled as models. An older release cannot read what a newer one wrote."""


def with_server(spec: EnvironmentSpec, made_in: EnvironmentSpec | None = None) -> EnvironmentSpec:
    """`spec` with the packages of the server that it does not name itself. A user-managed Python stays as it is.

    `made_in` is the environment in which the model was trained, for versions that `spec` leaves open.

    >>> with_server(EnvironmentSpec(pip_packages=("orjson==3.9",))).pip_packages
    ('orjson==3.9', 'uvicorn>=0.22,<1', 'httptools>=0.5', 'uvloop>=0.17')
    """
    if spec.container is not None:
        raise WebserviceException(
            f"a service cannot run in the image {spec.container.image!r}",
            cause="Services run on this machine, without an image.",
            hint="Give an InferenceConfig with an environment of packages.",
        )
    if spec.user_managed:
        return spec
    spec = _with_python(spec if made_in is None else as_model_needs(spec, made_in))
    named = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages)}
    added = [each for each in SERVER_PACKAGES if package_name(each) not in named]
    return replace(spec, pip_packages=(*spec.pip_packages, *added))


def as_model_needs(spec: EnvironmentSpec, made_in: EnvironmentSpec) -> EnvironmentSpec:
    """`spec` with the Python and the releases that the model was trained with, if its own Python is too old.

    This applies only if it names packages that models are pickled with, all without a version: another release of them
    may not be able to read the model.

    >>> made_in = EnvironmentSpec(python_version="3.8", pip_packages=("scikit-learn==0.22.1",))
    >>> found = as_model_needs(EnvironmentSpec(conda_packages=("scikit-learn",)), made_in)
    >>> found.python_version, found.pip_packages, found.conda_packages
    ('3.8', ('scikit-learn==0.22.1',), ())
    """
    asked, python = _parts(spec.python_version), made_in.python_version
    if asked >= _OLDEST or asked[:1] == (2,) or not _leaves_releases_open(spec):
        return spec
    if asked and not () < _parts(python) < _OLDEST:
        warn(f"{_too_old(spec)}: the service uses the Python of its model, since its packages have no versions")
    of_pip = {package_name(each): each for each in made_in.pip_packages if parse(each)}
    of_conda = {package_name(each): each for each in made_in.conda_packages}
    from_pip = [each for each in spec.conda_packages if is_open(each) and package_name(each) in of_pip]
    from_conda = [each for each in spec.conda_packages if each not in from_pip]
    named = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages)}
    below = _IN_MODEL_FILES - named
    return replace(
        spec,
        python_version=python,
        pip_packages=(*_pin_known_releases(of_pip, (*spec.pip_packages, *from_pip)), *_limits(of_pip, below)),
        conda_packages=(*_pin_known_releases(of_conda, from_conda), *_limits(of_conda, below)),
    )


def _limits(known: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """The known requirements that name a release, by package."""
    return sorted(known[name] for name in names if name in known and not is_open(known[name]))


def _pin_known_releases(known: Mapping[str, str], asked: Iterable[str]) -> tuple[str, ...]:
    """The requested requirements; those without a version with their known release."""
    return tuple(known.get(package_name(each), each) if is_open(each) else each for each in asked)


def _with_python(spec: EnvironmentSpec) -> EnvironmentSpec:
    """`spec` with a Python that the server supports: the one closest to the requested Python that has the packages."""
    asked = _parts(spec.python_version)
    if not asked or asked >= _OLDEST:
        return spec
    if asked[0] < _OLDEST[0]:
        raise WebserviceException(
            f"services need Python {_OLDEST_VERSION} or newer, and the environment requests {spec.python_version}",
            hint="Name a newer python in its packages.",
        )
    warn(
        f"{_too_old(spec)}: the service uses Python {_OLDEST_VERSION}, "
        "or the closest newer one on this machine for which its packages can be installed"
    )
    return replace(spec, python_version=_OLDEST_VERSION, newer_python=True)


def _too_old(spec: EnvironmentSpec) -> str:
    return f"the environment requests Python {spec.python_version}, and services need {_OLDEST_VERSION} or newer"


def _leaves_releases_open(spec: EnvironmentSpec) -> bool:
    """Whether `spec` names packages that models are pickled with, all without a version."""
    needed = [each for each in (*spec.pip_packages, *spec.conda_packages) if package_name(each) in _IN_MODEL_FILES]
    return bool(needed) and all(map(is_open, needed))


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
