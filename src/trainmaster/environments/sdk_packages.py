"""Packages of Azure's SDK are never installed, but replaced by their useful dependencies.

Every job can import `azureml` without them. But scripts import other packages that only the SDK installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmaster.environments.requirement import package_name, parse

_TABLES = ("pandas", "pyarrow")
_SERVICES = ("flask", "numpy", "requests")
# SDK packages without dependencies that scripts use directly are not listed.
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

# Smaller variants that scripts may request themselves.
_SMALLER = {"mlflow": "mlflow-skinny"}


@dataclass(frozen=True)
class Replaced:
    """A list of packages without those of the SDK, and the replacements."""

    packages: list[str]
    replaced: Mapping[str, tuple[str, ...]]
    """Maps each SDK package, as written, to the packages that replace it."""

    @property
    def warning(self) -> str:
        """The warning for the user; empty if nothing was replaced."""
        by = [f"{given} by {_join_names(taken)}" for given, taken in self.replaced.items() if taken]
        left_out = [given for given, taken in self.replaced.items() if not taken]
        sentences = []
        if by:
            sentences.append(f"packages of Azure's SDK are replaced by their dependencies: {', '.join(by)}")
        if left_out:
            sentences.append(f"not installed: {', '.join(left_out)}")
        return f"{'; '.join(sentences)}; every job can import 'azureml'" if sentences else ""


def replace_sdk_packages(given: Sequence[str]) -> Replaced:
    """Replace the SDK packages in a list. Packages that are already listed, in any version, are not repeated.

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


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
