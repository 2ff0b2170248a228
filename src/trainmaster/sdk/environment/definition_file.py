"""An environment as plain data with v1's keys, for the workspace, and as files in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.conda_file import FILE_NAME as CONDA_FILE
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.environment.definition import Environment

FILE_NAME = "azureml_environment.json"

_DOCKER = {
    "enabled": bool,
    "base_image": str,
    "base_dockerfile": str,
    "build_context": object,
    "shm_size": str,
    "shared_volumes": bool,
    "arguments": list,
    "gpu_support": bool,
    "platform": object,
}


def describe(environment: Environment) -> dict[str, Any]:
    """An environment as plain data, without the password of an image registry."""
    python, docker = environment.python, environment.docker
    sections: dict[str, Any] = {
        "interpreterPath": python.interpreter_path,
        "userManagedDependencies": bool(python.user_managed_dependencies),
        "condaDependenciesFile": python.conda_dependencies_file and str(python.conda_dependencies_file),
    }
    if isinstance(python.conda_dependencies, CondaDependencies):
        sections["condaDependencies"] = python.conda_dependencies.as_dict()
    recipe = _recipe(python.recipe)
    if recipe:
        sections["recipe"] = recipe
    registry = docker.base_image_registry
    plain = {_camel(name): getattr(docker, name) for name in _DOCKER}
    plain["baseImageRegistry"] = {
        "address": getattr(registry, "address", None),
        "username": getattr(registry, "username", None),
    }
    whole = {
        "name": environment.name,
        "environmentVariables": _variables(environment.environment_variables),
        "inferencingStackVersion": environment.inferencing_stack_version,
        "python": sections,
        "docker": plain,
    }
    # Values that JSON does not support (a platform object, a path) become strings.
    known: dict[str, Any] = json.loads(json.dumps(whole, default=str))
    return known


def _variables(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping | None):
        raise UserErrorException(f"environment_variables must be a dict, not {type(given).__name__}")
    return {str(key): str(value) for key, value in (given or {}).items()}


def fill(environment: Environment, data: Any, where: str) -> None:
    """Fills an environment with the result of `describe`. Sections that only v1 had (spark, ...) are ignored."""
    part = _Part(data, where)
    environment.environment_variables = {
        str(key): str(value) for key, value in part.get("environmentVariables", dict, {}).items()
    }
    environment.inferencing_stack_version = part.get("inferencingStackVersion", str, None)
    python = _Part(part.get("python", dict, {}), f"python of {where}")
    ours = environment.python
    ours.interpreter_path = python.get("interpreterPath", str, ours.interpreter_path)
    ours.user_managed_dependencies = python.get("userManagedDependencies", bool, False)
    ours.conda_dependencies_file = python.get("condaDependenciesFile", str, None)
    conda = python.get("condaDependencies", dict, None)
    if conda is not None:
        ours.conda_dependencies = CondaDependencies(_underlying_structure=conda)
    ours.recipe = _as_recipe(python.get("recipe", dict, {}), where)
    docker = _Part(part.get("docker", dict, {}), f"docker of {where}")
    for name, kind in _DOCKER.items():
        value = docker.get(_camel(name), kind, None)
        if value is not None:
            setattr(environment.docker, name, value)
    registry = _Part(docker.get("baseImageRegistry", dict, {}), f"baseImageRegistry of {where}")
    environment.docker.base_image_registry.address = registry.get("address", str, None)
    environment.docker.base_image_registry.username = registry.get("username", str, None)


def save(environment: Environment, folder: Path, overwrite: bool) -> None:
    """Writes the definition, and the packages as a conda file that users can edit."""
    definition = describe(environment)
    definition["version"] = environment.version
    conda = definition["python"].pop("condaDependencies", None)
    present = [name for name in (FILE_NAME, CONDA_FILE) if (folder / name).exists()]
    if present and not overwrite:
        raise UserErrorException(f"{folder} already has {present[0]}", hint="Give overwrite=True to replace it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE_NAME).write_text(json.dumps(definition, indent=4) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserErrorException(f"{folder} cannot be written", cause=str(error)) from None
    if conda is not None:
        CondaDependencies(_underlying_structure=conda).save(folder / CONDA_FILE)


def load(folder: Path) -> tuple[str, Any, dict[str, Any]]:
    """The name, version and definition in a folder. A conda file there replaces the packages of the definition."""
    path = folder / FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserErrorException(
            f"there is no environment in {folder}",
            cause=f"It has no {FILE_NAME}.",
            hint="Write one with environment.save_to_directory(path).",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserErrorException(f"{path} cannot be read", cause=str(error)) from None
    part = _Part(data, str(path))
    name, version = part.get("name", str, ""), part.get("version", object, None)
    definition = dict(data)
    if (folder / CONDA_FILE).is_file():
        python = dict(part.get("python", dict, {}))
        python["condaDependencies"] = CondaDependencies(folder / CONDA_FILE).as_dict()
        definition["python"] = python
    return name, version, definition


class _Part:
    """Plain data, read key by key with the expected type of each value."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise UserErrorException(f"{where} must be an object, not {data!r}")
        self._data, self._where = data, where

    def get(self, key: str, kind: type, default: Any) -> Any:
        value = self._data.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise UserErrorException(f"{key} of {self._where} must be {kind.__name__}, not {value!r}")
        return value


def _recipe(recipe: EnvironmentSpec) -> dict[str, Any]:
    usual = EnvironmentSpec()
    changed = [field.name for field in fields(recipe) if getattr(recipe, field.name) != getattr(usual, field.name)]
    return {name: value for name, value in to_plain(recipe).items() if name in changed}


def _as_recipe(data: Mapping[str, Any], where: str) -> EnvironmentSpec:
    try:
        return replace(from_plain(EnvironmentSpec, data, f"recipe of {where}"), user_managed=False)
    except PlainDataError as error:
        raise UserErrorException(f"{where} cannot be used", cause=str(error)) from None


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
