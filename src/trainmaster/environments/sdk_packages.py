"""Packages of Azure's SDK in lists of packages: never installed, replaced by what they brought.

Every job can import `azureml` without them. But they also brought other packages that scripts import and never name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmaster.environments.requirement import package_name, parse

_TABLES = ("pandas", "pyarrow")
_SERVICES = ("flask", "numpy", "requests")
# Those that brought nothing scripts use by itself, or only parts of Azure, are not named here.
_BROUGHT: Mapping[str, tuple[str, ...]] = {
    "azureml-contrib-fairness": ("fairlearn",),
    "azureml-contrib-interpret": ("interpret-community",),
    "azureml-contrib-notebook": ("papermill",),
    "azureml-contrib-services": ("flask",),
    "azureml-contrib-tensorboard": ("tensorboard",),
    "azureml-core": ("python-dateutil", "pytz", "requests"),
    "azureml-datadrift": _TABLES,
    "azureml-dataprep": _TABLES,
    "azureml-dataset-runtime": _TABLES,
    "azureml-defaults": _SERVICES,
    "azureml-explain-model": ("interpret-community",),
    "azureml-fsspec": ("fsspec",),
    "azureml-inference-server-http": _SERVICES,
    "azureml-interpret": ("interpret-community",),
    "azureml-mlflow": ("mlflow",),
    "azureml-opendatasets": (*_TABLES, "scipy"),
    "azureml-sdk": _TABLES,
    "azureml-tensorboard": ("tensorboard",),
    "azureml-widgets": ("ipywidgets",),
}

# Enough for scripts that name it themselves.
_SMALLER = {"mlflow": "mlflow-skinny"}


@dataclass(frozen=True)
class Replaced:
    """A list of packages without those of the SDK, and what became of each of these."""

    packages: list[str]
    replaced: Mapping[str, tuple[str, ...]]
    """A package of the SDK, as it was written, to the packages that take its place."""

    @property
    def warning(self) -> str:
        """What a person should know; empty if nothing was replaced."""
        by = [f"{given} by {_listed(taken)}" for given, taken in self.replaced.items() if taken]
        left_out = [given for given, taken in self.replaced.items() if not taken]
        sentences = []
        if by:
            sentences.append(f"packages of Azure's SDK are replaced by what they brought: {', '.join(by)}")
        if left_out:
            sentences.append(f"{', '.join(left_out)}: left out of the environment")
        return f"{'; '.join(sentences)}; every job has 'azureml' to import" if sentences else ""


def replace_sdk_packages(given: Sequence[str]) -> Replaced:
    """The same packages with those of the SDK replaced. What is named already, in whatever release, is not repeated.

    >>> replace_sdk_packages(["torch", "azureml-mlflow==1.20", "azureml-core", "requests<3"]).packages
    ['torch', 'mlflow', 'python-dateutil', 'pytz', 'requests<3']
    """
    named = {package_name(each) for each in given}
    packages: list[str] = []
    replaced: dict[str, tuple[str, ...]] = {}
    for package in given:
        name = package_name(package)
        if not name.startswith("azureml-"):
            packages.append(package)
            continue
        brought = _BROUGHT.get(name, ())
        replaced[package] = brought
        added = [each for each in brought if named.isdisjoint((each, _SMALLER.get(each, each)))]
        named.update(added)
        packages += [f"{each}{_marker(package)}" for each in added]
    return Replaced(packages, replaced)


def _marker(package: str) -> str:
    parts = parse(package)
    return f"; {parts.marker}" if parts and parts.marker else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
