"""The environment of a service: what was asked for, and what the scoring server needs beside it."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.requirement import package_name
from trainmaster.errors import WebserviceException
from trainmaster.job import EnvironmentSpec

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
    _check_python(spec.python_version)
    named = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages)}
    added = [each for each in SERVER_PACKAGES if package_name(each) not in named]
    return replace(spec, pip_packages=(*spec.pip_packages, *added))


def _check_python(version: str) -> None:
    parts = tuple(int(part) for part in version.split(".") if part.isdigit())
    if parts and parts < _OLDEST:
        raise WebserviceException(
            f"services need Python {_OLDEST[0]}.{_OLDEST[1]} or newer, and the environment asks for {version}",
            hint="Name a newer python in its packages.",
        )
