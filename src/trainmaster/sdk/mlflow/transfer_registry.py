"""Copies registered models with their versions, aliases and stages."""

from __future__ import annotations

from typing import Any

from mlflow.exceptions import MlflowException

from trainmaster.sdk.mlflow.transfer_sides import list_pages
from trainmaster.sdk.mlflow.transfer_state import ABSENT, Copy

_LOGGED = "models:/m-"


class RegistryTransfer:
    """Copies the model registry."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._source, self._target = copy.source, copy.target

    def copy_all(self, are_all: bool) -> None:
        """Copy the registered models: all, or those whose versions are all of runs that were copied."""
        for model in list_pages(self._source.client.search_registered_models):
            versions = self._list_versions(model)
            # The numbers of versions follow each other, so one that is left out now could not come later.
            if are_all or all(each.run_id in self._copy.ids for each in versions):
                self._copy.attempt(f"registered model {model.name!r}", self._copy_registered_model, model, versions)

    def _list_versions(self, model: Any) -> list[Any]:
        found = list_pages(self._source.client.search_model_versions, filter_string=f"name = '{model.name}'")
        return sorted(found, key=lambda each: int(each.version))

    def _copy_registered_model(self, model: Any, versions: list[Any]) -> None:
        try:
            self._target.client.get_registered_model(model.name)
        except MlflowException as error:
            if error.error_code != ABSENT:
                raise
            self._target.client.create_registered_model(model.name, dict(model.tags), model.description)
        for version in versions:
            self._copy.attempt(f"version {version.version} of {model.name!r}", self._copy_version, version)
        for alias, number in self._source.client.get_registered_model(model.name).aliases.items():
            self._copy.attempt(f"alias {alias!r} of {model.name!r}", self._copy_alias, model.name, alias, number)

    def _copy_alias(self, name: str, alias: str, number: Any) -> None:
        self._target.client.set_registered_model_alias(name, alias, str(number))

    def _copy_version(self, version: Any) -> None:
        try:
            self._target.client.get_model_version(version.name, version.version)
            return
        except MlflowException as error:
            if error.error_code != ABSENT:
                raise
        source = self._find_source(version)
        said: dict[str, Any] = {"tags": dict(version.tags), "description": version.description}
        if source.startswith(_LOGGED):
            said["model_id"] = source[len(_LOGGED) - 2 :]
        while True:
            made = self._target.client.create_model_version(
                version.name, source, self._copy.ids.get(version.run_id), **said
            )
            if int(made.version) >= int(version.version):
                break
            # The number of a version that was deleted there.
            self._target.client.delete_model_version(made.name, made.version)
        if version.current_stage not in (None, "None"):
            self._target.client.transition_model_version_stage(made.name, made.version, version.current_stage)
        self._copy.report.versions += 1

    def _find_source(self, version: Any) -> str:
        """Where the files of a version are in the copy."""
        scheme, _, rest = version.source.partition(":/")
        if scheme == "models" and rest in self._copy.ids:
            return f"models:/{self._copy.ids[rest]}"
        before, _, path = version.source.partition("/artifacts/")
        model_id = before.rpartition("/")[2]
        if model_id in self._copy.ids and model_id.startswith("m-"):
            return f"models:/{self._copy.ids[model_id]}"
        if version.run_id in self._copy.ids and path and version.run_id in before:
            return f"runs:/{self._copy.ids[version.run_id]}/{path}"
        raise MlflowException(f"its files are at {version.source}, which belongs to no run that was copied")
