"""The canonical form of an environment: equivalent specifications get the same digest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from trainmaster.environments.requirement import parse
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec

_LONG_OPTIONS = {"-i": "--index-url", "-f": "--find-links", "-e": "--editable", "-c": "--constraint"}
_CONDA_OPERATOR = re.compile(r"\s*([<>=!~]=?|[,|])\s*")
_CONDA_NAME = re.compile(r"(?:(?P<channel>\S+)::)?(?P<name>[A-Za-z0-9_.-]+)(?P<rest>.*)")


def canonical(spec: EnvironmentSpec) -> EnvironmentSpec:
    """Normalize spelling and spacing, remove repetitions and sort the packages.

    The order of pip's options and conda's channels is kept, because it matters.
    """
    if spec.user_managed:
        return replace(
            spec,
            python_version="",
            pip_packages=(),
            optional_packages=(),
            conda_packages=(),
            conda_channels=(),
            lock="",
        )
    lines = [line.strip() for line in spec.pip_packages]
    options = _once(_option(line) for line in lines if line.startswith("-"))
    packages = sorted({_package(line) for line in lines if not line.startswith("-")})
    return replace(
        spec,
        interpreter="",
        # Which image is used changes nothing. That there is one decides which Python fits (`pythons.python_for`).
        container=ContainerSpec(image="") if spec.container else None,
        pip_packages=(*options, *packages),
        optional_packages=tuple(sorted(set(spec.optional_packages))),
        conda_packages=tuple(sorted({_conda_package(package) for package in spec.conda_packages})),
        conda_channels=_once(channel.strip().rstrip("/") for channel in spec.conda_channels),
    )


def local_files(spec: EnvironmentSpec) -> list[str]:
    """List the packages of `spec` that are archives on this machine, by path.

    >>> local_files(EnvironmentSpec(pip_packages=("numpy", "/w/a.whl", "b @ file:///w/b.whl", "https://c/c.whl")))
    ['/w/a.whl', '/w/b.whl']
    """
    places = []
    for line in spec.pip_packages:
        parts = parse(line)
        place = (parts.url if parts else line).removeprefix("file://").partition("#")[0]
        if place.startswith("/"):
            places.append(place)
    return places


def _option(line: str) -> str:
    name, _, value = line.partition(" ")
    if "=" in name:
        name, _, rest = name.partition("=")
        value = f"{rest} {value}"
    elif not name.startswith("--") and len(name) > 2:
        # pip accepts -fhttps://... for -f https://...
        name, value = name[:2], f"{name[2:]} {value}"
    return " ".join([_LONG_OPTIONS.get(name, name), *value.split()])


def _package(line: str) -> str:
    parts = parse(line)
    return str(parts) if parts else line


def _conda_package(text: str) -> str:
    text = text.strip()
    found = _CONDA_NAME.fullmatch(text)
    if not found or "[" in text:
        return text
    # Remove spaces only around operators: in `numpy 1.8 py36_0` they separate release and build.
    rest = " ".join(_CONDA_OPERATOR.sub(r"\1", found["rest"]).split())
    channel = f"{found['channel']}::" if found["channel"] else ""
    separator = " " if rest and found["rest"][:1].isspace() and rest[0] not in "<>=!~" else ""
    return f"{channel}{found['name'].lower()}{separator}{rest}"


def _once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
