"""Azure's curated environments: known by their names, and stood for by packages of the framework in the name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from trainmaster.environments import pythons
from trainmaster.environments.frameworks import (
    CHAINER,
    PYTORCH,
    SKLEARN,
    TENSORFLOW,
    Framework,
    choose_python,
    release_of,
)
from trainmaster.errors import UserErrorException
from trainmaster.job import Accelerator
from trainmaster.machine import gpus

_PREFIXES = ("azureml", "microsoft")
_FRAMEWORKS = (
    ("pytorch", PYTORCH),
    ("tensorflow", TENSORFLOW),
    ("chainer", CHAINER),
    ("scikit-learn", SKLEARN),
    ("sklearn", SKLEARN),
)
_EMPTY = ("azureml-minimal",)


@dataclass(frozen=True)
class StandIn:
    """What is installed here in place of a curated environment."""

    packages: tuple[str, ...] = ()
    python: str = ""
    """Empty for the Python that submits."""
    accelerator: Accelerator = "cpu"


def is_curated(name: str) -> bool:
    """Whether this is a name that Azure kept for its own environments.

    >>> [is_curated(name) for name in ("AzureML-Minimal", "mine")]
    [True, False]
    """
    return name.lower().startswith(_PREFIXES)


def stand_in(name: str) -> StandIn:
    """The framework that a curated name names, in that release; other names are refused.

    >>> stand_in("AzureML-Minimal").packages
    ()
    """
    if name.lower() in _EMPTY:
        return StandIn()
    framework, version = _named(name)
    if framework is None or not version:
        _refuse(name)
    release = release_of(framework, version)
    use_gpu = name.lower().endswith("gpu") and bool(gpus())
    python = choose_python(release, pythons.running_version(), pythons.all_pythons())
    return StandIn(
        packages=release.packages(use_gpu),
        python="" if python == pythons.running_version() else python,
        accelerator="cuda" if use_gpu else "cpu",
    )


def horovod_for(name: str) -> str:
    """The Horovod that a curated environment had, for runs under MPI; empty where there was none.

    >>> horovod_for("AzureML-PyTorch-1.6-GPU"), horovod_for("mine")
    ('0.19.5', '')
    """
    framework, version = _named(name) if is_curated(name) else (None, "")
    return release_of(framework, version).era.horovod if framework is not None and version else ""


def _named(name: str) -> tuple[Framework | None, str]:
    for part, framework in _FRAMEWORKS:
        found = re.search(rf"{part}(?:-(\d+\.\d+(?:\.\d+)?))?", name.lower())
        if found:
            return framework, found[1] or ""
    return None, ""


def _refuse(name: str) -> NoReturn:
    raise UserErrorException(
        f"{name!r} is a curated environment of Azure, and what was in it is not known here",
        hint="Use Environment('my-environment') with CondaDependencies.create(pip_packages=[...]).",
    )
