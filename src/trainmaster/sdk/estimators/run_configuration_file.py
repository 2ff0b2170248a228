"""Run configurations as YAML files with v1's keys, in `.azureml/<name>.runconfig`, with a conda file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.conda_file import FILE_NAME as CONDA_FILE
from trainmaster.job.errors import RunConfigurationException, UserErrorException
from trainmaster.sdk.environment import definition_file
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment

if TYPE_CHECKING:
    from trainmaster.sdk.estimators.run_configuration import RunConfiguration

FOLDERS = (".azureml", "aml_config")
_SUFFIX = ".runconfig"

# Keys with plain values, and keys with sections.
_PLAIN = (
    "script",
    "arguments",
    "command",
    "module",
    "target",
    "framework",
    "communicator",
    "node_count",
    "max_run_duration_seconds",
    "max_retries",
    "hang_seconds",
    "environment_variables",
    "priority",
    "credential_passthrough",
)
_SECTIONS = {
    "docker": ("use_docker", "shared_volumes", "arguments", "shm_size"),
    "mpi": ("process_count_per_node", "node_count"),
    "tensorflow": ("worker_count", "parameter_server_count"),
    "pytorch": ("communication_backend", "process_count", "node_count", "min_nodes", "wait_seconds"),
    "history": ("output_collection", "snapshot_project", "directories_to_watch"),
    "amlcompute": ("vm_size", "vm_priority"),
    "container_instance": ("region", "cpu_cores", "memory_gb"),
    "batchai": ("node_count",),
    "spark": ("configuration",),
    "hdi": ("yarn_deploy_mode",),
}
_REFERENCE = {
    "dataStoreName": "datastore_name",
    "mode": "mode",
    "pathOnDataStore": "path_on_datastore",
    "pathOnCompute": "path_on_compute",
    "overwrite": "overwrite",
}


def save(config: RunConfiguration, path: Any, name: str | None, separate_environment: bool) -> None:
    """Writes `config` below the project folder `path`, or to the file `path` if no name is given."""
    import yaml

    file = _file_to_write(path, name)
    data = _describe(config)
    environment = data["environment"]
    conda = environment["python"].pop("condaDependencies", None)
    if environment["python"].get("condaDependenciesFile"):
        # The packages are in the user's own file, which is referenced and not copied.
        conda = None
    others: dict[Path, str] = {}
    if conda is not None:
        packages = CondaDependencies(_underlying_structure=conda).serialize_to_string()
        place = _free(file.parent / CONDA_FILE, packages, file.stem)
        environment["python"]["condaDependenciesFile"] = _from_project(place)
        others[place] = packages
    if separate_environment:
        place = file.with_name(f"{file.stem}_environment.yml")
        data["environment"] = _from_project(place)
        others[place] = _yaml(environment)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for each, text in {**others, file: _yaml(data)}.items():
            each.write_text(text, encoding="utf-8")
    except (OSError, yaml.YAMLError) as error:
        raise RunConfigurationException(f"{file} cannot be written", cause=str(error)) from None


def load(config: RunConfiguration, path: Any, name: str | None) -> None:
    """Fills `config` from a file of v1 or ours. Keys that only Azure used are ignored."""
    file = _file_to_read(path, name)
    data = _read(file)
    for field in _PLAIN:
        if data.get(_camel(field)) is not None:
            setattr(config, field, data[_camel(field)])
    for section, fields in _SECTIONS.items():
        _fill(getattr(config, section), data.get(_camel(section)), fields, f"{_camel(section)} of {file}")
    config.data_references = _references(data.get("dataReferences"), file)
    config.source_directory_data_store = data.get("sourceDirectoryDataStore")
    config.environment = _environment(data.get("environment"), file)


def delete(path: Any, name: str) -> None:
    """Removes a saved run configuration. Its conda file stays, because others may use it."""
    file = _file_to_read(path, name)
    try:
        file.unlink()
    except OSError as error:
        raise RunConfigurationException(f"{file} cannot be deleted", cause=str(error)) from None


# Writing


def _describe(config: RunConfiguration) -> dict[str, Any]:
    for kind in ("data", "output_data"):
        if getattr(config, kind):
            raise RunConfigurationException(
                f"{kind} of a run configuration cannot be saved: a file cannot contain datasets",
                hint="Save it without them, and set them after loading.",
            )
    data: dict[str, Any] = {_camel(field): getattr(config, field) for field in _PLAIN}
    references = dict(config.data_references)
    for words in ("arguments", "command"):
        data[words] = _words(data[words], references)
    for section, fields in _SECTIONS.items():
        values = getattr(config, section)
        data[_camel(section)] = {_camel(field): getattr(values, field, None) for field in fields}
    data["dataReferences"] = {name: _reference(name, each) for name, each in references.items()}
    store = config.source_directory_data_store
    data["sourceDirectoryDataStore"] = getattr(store, "name", store)
    data["environment"] = {"version": config.environment.version, **definition_file.describe(config.environment)}
    return data


def _words(words: Any, references: dict[str, Any]) -> Any:
    """The arguments as strings. Data among them is added to `references`."""
    if not isinstance(words, list | tuple):
        return words
    for word in words:
        if hasattr(word, "to_config"):
            references.setdefault(word.data_reference_name, word.to_config())
    return [word if isinstance(word, int | float) or word is None else str(word) for word in words]


def _reference(name: str, reference: Any) -> dict[str, Any]:
    config = reference.to_config() if hasattr(reference, "to_config") else reference
    missing = [field for field in _REFERENCE.values() if not hasattr(config, field)]
    if missing:
        raise RunConfigurationException(
            f"data_references[{name!r}] is a {type(reference).__name__}, which cannot be saved",
            hint="Use reference.to_config() or a DataReferenceConfiguration.",
        )
    return {key: getattr(config, field) for key, field in _REFERENCE.items()}


def _yaml(data: Mapping[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(dict(data), sort_keys=False, default_flow_style=False, allow_unicode=True, width=10_000)
    return text


def _free(place: Path, text: str, stem: str) -> Path:
    """`place`, unless another run configuration uses it for its packages."""
    if place.is_file() and place.read_text(encoding="utf-8") != text:
        return place.with_name(f"{stem}_{place.name}")
    return place


# Reading


def _read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise RunConfigurationException(f"{file} cannot be read", cause=str(error)) from None
    if not isinstance(data, dict):
        raise RunConfigurationException(f"{file} is not a run configuration", cause="It is not a YAML mapping.")
    return data


def _fill(section: Any, data: Any, fields: tuple[str, ...], where: str) -> None:
    given = _section({} if data is None else data, where)
    for field in fields:
        if given.get(_camel(field)) is not None:
            setattr(section, field, given[_camel(field)])


def _section(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise RunConfigurationException(f"{where} must be a section with keys, not {data!r}")
    return data


def _references(data: Any, file: Path) -> dict[str, Any]:
    from trainmaster.sdk.datastores import DataReferenceConfiguration

    found: dict[str, Any] = {}
    for name, fields in _section(data or {}, f"dataReferences of {file}").items():
        given = _section(fields, f"dataReferences.{name} of {file}")
        known = {field: given[key] for key, field in _REFERENCE.items() if given.get(key) is not None}
        found[str(name)] = DataReferenceConfiguration(**known)
    return found


def _environment(data: Any, file: Path) -> Environment:
    if isinstance(data, str):
        data = _read(_near(file, data))
    data = _section(data or {}, f"environment of {file}")
    environment = Environment(str(data.get("name") or "default-environment"))
    definition_file.fill(environment, data, f"environment of {file}")
    environment.version = None if data.get("version") is None else str(data["version"])
    conda = environment.python.conda_dependencies_file
    if conda and _near(file, conda).is_file():
        environment.python.conda_dependencies = CondaDependencies(_near(file, conda))
        environment.python.conda_dependencies_file = None
    return environment


# Locating files


def _file_to_write(path: Any, name: str | None) -> Path:
    place = Path.cwd() if path is None else _path(path)
    if name is None:
        if place.is_dir():
            raise UserErrorException(
                f"{place} is a folder, and no name is given", hint="Write run_config.save(path='.', name='my-run')."
            )
        return place
    return _folder(place) / _file_name(name)


def _folder(place: Path) -> Path:
    return place if place.name in FOLDERS else place / FOLDERS[0]


def _file_to_read(path: Any, name: str | None) -> Path:
    place = _path(path)
    if place.is_file():
        return place
    folders = [place, *(place / folder for folder in FOLDERS)]
    if name is not None:
        for folder in (*folders[1:], folders[0]):
            for file in (folder / _file_name(name), folder / str(name)):
                if file.is_file():
                    return file
    known = sorted({file.stem for folder in folders for file in folder.glob(f"*{_SUFFIX}")})
    raise UserErrorException(
        f"no run configuration {name or ''} was found".rstrip() + f" in {place}",
        cause=f"Searched {', '.join(FOLDERS)} and the folder itself.",
        hint=f"Found: {', '.join(known)}." if known else "Write one with run_config.save(path, name).",
    )


def _file_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise UserErrorException(f"name must be the name of a run configuration, such as 'my-run', not {name!r}")
    return name if name.endswith(_SUFFIX) else name + _SUFFIX


def _near(file: Path, given: str) -> Path:
    """A path in a run configuration, relative to the project folder, as in v1, or to the file."""
    project = file.parent.parent if file.parent.name in FOLDERS else file.parent
    return project / given if (project / given).is_file() else file.parent / given


def _from_project(place: Path) -> str:
    return f"{place.parent.name}/{place.name}" if place.parent.name in FOLDERS else place.name


def _path(value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise UserErrorException(f"path must be the path of a folder or file, not {value!r}")
    return Path(value).expanduser()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
