"""Conda's environment files: YAML with channels and dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmaster.environments.requirements_file import text_of
from trainmaster.job.errors import UserErrorException

DEFAULT_NAME = "project_environment"
FILE_NAME = "conda_dependencies.yml"

_KEYS = ("name", "channels", "dependencies", "prefix", "variables")


@dataclass(frozen=True)
class CondaFile:
    """The contents of a conda environment file."""

    name: str = DEFAULT_NAME
    channels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    """The lines of the pip section: packages and options."""
    variables: Mapping[str, str] = field(default_factory=dict)


def read_conda_file(path: Path, where: str) -> CondaFile:
    """Read the file at `path`; `where` names it in error messages."""
    return parse_conda_file(text_of(path, where), where)


def parse_conda_file(text: str, where: str) -> CondaFile:
    """Parse the text of a file; errors name the line if it is known."""
    return conda_file_of(_load(text, where), where)


def conda_file_of(data: Any, where: str) -> CondaFile:
    """Convert parsed YAML (a dict, or None for an empty file)."""
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise UserErrorException(
            f"{where} is not a conda environment: it must have keys such as 'dependencies', not {_kind(data)}"
        )
    unknown = sorted(str(key) for key in data if key not in _KEYS)
    if unknown:
        raise UserErrorException(
            f"{where} has keys that conda does not know: {', '.join(unknown)}", hint=f"Valid keys: {', '.join(_KEYS)}."
        )
    packages, pip = _dependencies(data.get("dependencies"), where)
    name = data.get("name")
    return CondaFile(
        name=DEFAULT_NAME if name is None else str(name),
        channels=tuple(_texts(data.get("channels"), f"'channels' of {where}")),
        packages=tuple(packages),
        pip=tuple(pip),
        variables=_variables(data.get("variables"), where),
    )


def as_dict(file: CondaFile) -> dict[str, Any]:
    """The file as nested lists and dicts, in conda's order."""
    dependencies: list[Any] = list(file.packages)
    if file.pip:
        dependencies.append({"pip": list(file.pip)})
    found: dict[str, Any] = {"name": file.name}
    if file.channels:
        found["channels"] = list(file.channels)
    found["dependencies"] = dependencies
    if file.variables:
        found["variables"] = dict(file.variables)
    return found


def dump_conda_file(file: CondaFile) -> str:
    """The file as YAML text."""
    import yaml

    text = yaml.safe_dump(as_dict(file), sort_keys=False, default_flow_style=False, allow_unicode=True, width=10_000)
    return str(text)


def _load(text: str, where: str) -> Any:
    # Imported only when a file is read.
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            _refuse_twice(node, where)
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        cause = ", ".join(part for part in (error.context, error.problem) if part)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line, cause = "", str(error)
    raise UserErrorException(
        f"{where} is not valid YAML{line}", cause=cause, hint="Lists are indented lines that begin with '- '."
    )


def _refuse_twice(node: Any, where: str) -> None:
    """Refuse duplicate keys: a YAML reader would silently drop the packages of the first."""
    seen: set[str] = set()
    for key, _ in node.value if node is not None and node.id == "mapping" else ():
        if key.value in seen:
            raise UserErrorException(f"{where}, line {key.start_mark.line + 1}: duplicate key {key.value!r}")
        seen.add(str(key.value))


def _dependencies(data: Any, where: str) -> tuple[list[str], list[str]]:
    packages: list[str] = []
    pip: list[str] = []
    for entry in _list(data, f"'dependencies' of {where}"):
        if isinstance(entry, dict) and set(entry) == {"pip"}:
            pip += _texts(entry["pip"], f"'pip' of {where}")
        elif isinstance(entry, dict):
            raise UserErrorException(
                f"{where}: 'dependencies' has the unknown section {', '.join(map(str, entry))}",
                hint="Only 'pip:' is allowed as a section; a package is a line such as '- numpy=1.26'.",
            )
        else:
            packages.append(_text(entry, f"'dependencies' of {where}"))
    return packages, pip


def _variables(data: Any, where: str) -> dict[str, str]:
    if data is None:
        return {}
    if not isinstance(data, dict) or any(isinstance(value, dict | list) for value in data.values()):
        raise UserErrorException(f"'variables' of {where} must map names to values, such as 'SEED: 1'")
    return {str(key): _scalar(value) for key, value in data.items()}


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _texts(data: Any, where: str) -> list[str]:
    return [_text(entry, where) for entry in _list(data, where)]


def _list(data: Any, where: str) -> list[Any]:
    if data is None:
        return []
    if not isinstance(data, list):
        raise UserErrorException(f"{where} must be a list, not {_kind(data)}", hint="Write one line '- ...' per entry.")
    return data


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or any(ord(letter) < 32 for letter in value):
        raise UserErrorException(f"{where} has an entry that is not a single line of text: {value!r}")
    return value.strip()


def _kind(data: Any) -> str:
    return {"str": "a text", "list": "a list", "dict": "a dict"}.get(type(data).__name__, f"{data!r}")
