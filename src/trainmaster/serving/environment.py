"""The environment of a service: what was asked for, and what the scoring server needs beside it."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.requirement import package_name
from trainmaster.errors import WebserviceException
from trainmaster.job import EnvironmentSpec
from trainmaster.notices import warn

SERVER_PACKAGES = ("uvicorn>=0.22,<1", "httptools>=0.5", "uvloop>=0.17", "orjson>=3.8")
"""As the extra `serve` has them."""

_OLDEST = (3, 7)


def with_server(spec: EnvironmentSpec) -> EnvironmentSpec:
    """`spec` with the packages of the server that it does not name itself; the user's own Python stays as it is.

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
    spec = _with_python(spec)
    named = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages)}
    added = [each for each in SERVER_PACKAGES if package_name(each) not in named]
    return replace(spec, pip_packages=(*spec.pip_packages, *added))


def _with_python(spec: EnvironmentSpec) -> EnvironmentSpec:
    """`spec` with a Python that the server runs on: the nearest one to the Python asked for that has the packages."""
    parts = tuple(int(part) for part in spec.python_version.split(".") if part.isdigit())
    if not parts or parts >= _OLDEST:
        return spec
    oldest = f"{_OLDEST[0]}.{_OLDEST[1]}"
    if parts[0] < _OLDEST[0]:
        raise WebserviceException(
            f"services need Python {oldest} or newer, and the environment asks for {spec.python_version}",
            hint="Name a newer python in its packages.",
        )
    warn(
        f"the environment asks for Python {spec.python_version}, and services need {oldest} or newer: "
        f"it gets Python {oldest}, or the nearest newer one of this machine that its packages can be installed for"
    )
    return replace(spec, python_version=oldest, newer_python=True)
