"""Azure's curated environments: there are none here, and this is where it is said what to use instead."""

from __future__ import annotations

import re
from typing import NoReturn

from trainmaster.errors import UserErrorException

_PREFIXES = ("azureml", "microsoft")
_FRAMEWORKS = (
    ("pytorch", "PyTorch"),
    ("tensorflow", "TensorFlow"),
    ("chainer", "Chainer"),
    ("scikit-learn", "SKLearn"),
)
_OWN = "Environment('my-environment') with CondaDependencies.create(pip_packages=[...])"


def is_curated(name: str) -> bool:
    """Whether this is a name that Azure kept for its own environments.

    >>> [is_curated(name) for name in ("AzureML-Minimal", "mine")]
    [True, False]
    """
    return name.lower().startswith(_PREFIXES)


def refuse(name: str) -> NoReturn:
    """Says what to use instead of a curated environment."""
    raise UserErrorException(f"{name!r} is a curated environment of Azure, and not here", hint=instead_of(name))


def instead_of(name: str) -> str:
    """What serves the same purpose here.

    >>> instead_of("AzureML-PyTorch-1.3-GPU")[:52]
    "Use the estimator PyTorch(framework_version='1.3'), "
    """
    for part, estimator in _FRAMEWORKS:
        found = re.search(rf"{part}(?:-(\d+\.\d+(?:\.\d+)?))?", name.lower())
        if found:
            version = f"framework_version={found[1]!r}" if found[1] else ""
            return f"Use the estimator {estimator}({version}), which brings its framework, or {_OWN}."
    return f"Use {_OWN}."
