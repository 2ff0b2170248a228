"""The environment of a service: what was asked for, and what the scoring server needs beside it."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.conda_names import stand_in
from trainmaster.environments.requirement import package_name, parse
from trainmaster.errors import WebserviceException
from trainmaster.job import EnvironmentSpec
from trainmaster.notices import warn

SERVER_PACKAGES = ("uvicorn>=0.22,<1", "httptools>=0.5", "uvloop>=0.17", "orjson>=3.8")
"""As the extra `serve` has them."""

_OLDEST = (3, 7)
_IN_MODEL_FILES = frozenset(("joblib", "lightgbm", "numpy", "pandas", "scikit-learn", "scipy", "xgboost"))
"""Packages whose objects are pickled as models: an older release cannot read what a newer one wrote."""


def with_server(spec: EnvironmentSpec, trained_with: str = "") -> EnvironmentSpec:
    """`spec` with the packages of the server that it does not name itself; the user's own Python stays as it is.

    `trained_with` is the Python that the model comes from. It is used where `spec` asks for one that is too old.

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
    spec = _with_python(spec, trained_with)
    named = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages)}
    added = [each for each in SERVER_PACKAGES if package_name(each) not in named]
    return replace(spec, pip_packages=(*spec.pip_packages, *added))


def needs_newer_python(spec: EnvironmentSpec) -> bool:
    """Whether the server cannot run on the Python that `spec` asks for."""
    return () < _parts(spec.python_version) < _OLDEST


def _with_python(spec: EnvironmentSpec, trained_with: str) -> EnvironmentSpec:
    """`spec` with a Python that the server runs on: the model's, or the nearest newer one that has the packages."""
    if not needs_newer_python(spec):
        return spec
    oldest = f"{_OLDEST[0]}.{_OLDEST[1]}"
    if _parts(spec.python_version) < (3,):
        raise WebserviceException(
            f"services need Python {oldest} or newer, and the environment asks for {spec.python_version}",
            hint="Name a newer python in its packages.",
        )
    told = f"the environment asks for Python {spec.python_version}, and services need {oldest} or newer: it gets Python"
    if _parts(trained_with) >= _OLDEST and _reads_any_model(spec):
        warn(f"{told} {trained_with}, which the model comes from, because no package has a version")
        return replace(spec, python_version=trained_with, newer_python=True)
    warn(f"{told} {oldest}, or the nearest newer one of this machine that its packages can be installed for")
    return replace(spec, python_version=oldest, newer_python=True)


def _reads_any_model(spec: EnvironmentSpec) -> bool:
    """Whether the packages that read a model are named without a version: the Python then decides their releases."""
    found = [parse(each) for each in (*spec.pip_packages, *stand_in(spec.conda_packages)[0])]
    if any(each is None or each.clauses or each.url for each in found):
        return False
    return any(each is not None and each.name in _IN_MODEL_FILES for each in found)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
