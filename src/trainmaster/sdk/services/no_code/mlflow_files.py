"""What the files of a model in MLflow's format say: its flavours, its Python and its packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainmaster.environments import pythons
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.notices import warn

DESCRIPTION = "MLmodel"
_REQUIREMENTS, _PYTHON = "requirements.txt", "python_env.yaml"
_FLAVOUR = "python_function"
_LARGEST = 1_000_000
_VERSION = re.compile(r"(\d+\.\d+)(?:\.\d+)*")


def find_folder(paths: Iterable[str]) -> str | None:
    """The folder of a model in MLflow's format; None without exactly one description at the top of it.

    >>> find_folder(["model/MLmodel", "model/data/model.pkl"]), find_folder(["net.mlmodel"])
    ('model', None)
    """
    found = sorted((path for path in paths if path.rpartition("/")[2] == DESCRIPTION), key=lambda path: path.count("/"))
    if not found or (len(found) > 1 and found[0].count("/") == found[1].count("/")):
        return None
    return found[0].rpartition("/")[0]


def check_flavour(model: str, folder: Path) -> None:
    """Raise WebserviceException for a model that Python cannot load in MLflow's common way."""
    flavours = _read_yaml(folder / DESCRIPTION).get("flavors")
    if not isinstance(flavours, Mapping) or _FLAVOUR not in flavours:
        shown = ", ".join(map(str, flavours)) if isinstance(flavours, Mapping) else "none"
        raise WebserviceException(
            f"model {model} cannot be deployed without code: it has no flavour {_FLAVOUR}",
            cause=f"The flavours in its file {DESCRIPTION} are: {shown[:300]}.",
            hint="Log it with one of MLflow's flavours that have it, or give an InferenceConfig with a scoring script.",
        )


def make_environment(model: str, folder: Path) -> EnvironmentSpec:
    """The environment that the model was logged with."""
    packages = read_requirements(_read_text(folder / _REQUIREMENTS))
    if not packages:
        raise WebserviceException(
            f"model {model} cannot be deployed without code: it does not list its packages",
            cause=f"There is no {_REQUIREMENTS} beside its file {DESCRIPTION}, or it is empty.",
            hint="Log it with pip_requirements=[...], or give an InferenceConfig with an environment.",
        )
    return EnvironmentSpec(
        python_version=_choose_python(model, str(_read_yaml(folder / _PYTHON).get("python", ""))),
        pip_packages=packages,
        accelerator="cpu",
    )


def read_requirements(text: str) -> tuple[str, ...]:
    """The packages in a file of requirements. Options are left out: they would name files and servers.

    >>> read_requirements("mlflow==3.0  # logged\\n-c constraints.txt\\n\\nnumpy\\n")
    ('mlflow==3.0', 'numpy')
    """
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("-"))


def _choose_python(model: str, wanted: str) -> str:
    """The Python that the model was logged with, if this machine has it; else the running one, which is empty."""
    match = _VERSION.fullmatch(wanted.strip())
    if match is None or match[1] == pythons.running_version():
        return ""
    if match[1] in pythons.all_pythons():
        return match[1]
    warn(f"model {model} was logged with Python {match[1]}, which is not here: the service uses the running Python")
    return ""


def _read_yaml(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(_read_text(path))
    except (yaml.YAMLError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _read_text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""
