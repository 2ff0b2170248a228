"""Parts of a YAML document whose errors name the file and the key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.job.errors import ComputeTargetException


@dataclass(frozen=True)
class Entry:
    """A mapping in a file."""

    file: Path
    where: str
    """The path to it: `users[2].user`."""
    value: dict[str, Any]

    def text(self, key: str) -> str:
        """A text, or nothing if it is missing."""
        value = self.value.get(key)
        if value is None:
            return ""
        # A name, token or password of digits is a number in YAML.
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise self.error(key, f"must be text, not {_kind(value)}")
        return value

    def require_text(self, key: str) -> str:
        """A text that must be there."""
        if text := self.text(key):
            return text
        raise self.error(key, "is missing")

    def flag(self, key: str) -> bool:
        """True or false; false if it is missing."""
        value = self.value.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.error(key, f"must be true or false, not {_kind(value)}")

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        items = self._list(key)
        for number, item in enumerate(items):
            if not isinstance(item, str):
                raise self.error(f"{key}[{number}]", f"must be text, not {_kind(item)}")
        return items

    def path(self, key: str) -> Path | None:
        """A path; a relative one begins at the folder of the file."""
        text = self.text(key)
        return self.file.absolute().parent / text if text else None

    def entry(self, key: str) -> Entry:
        """A mapping; an empty one if it is missing."""
        return self._entry_of(key, self.value.get(key))

    def entries(self, key: str) -> list[Entry]:
        """A list of mappings."""
        return [self._entry_of(f"{key}[{number}]", item) for number, item in enumerate(self._list(key))]

    def path_to(self, key: str) -> str:
        """The key with everything above it."""
        return f"{self.where}.{key}" if self.where else key

    def error(self, key: str, problem: str, hint: str = "") -> ComputeTargetException:
        """An error that names the file and the key."""
        return ComputeTargetException(f"{self.file}: {self.path_to(key)} {problem}", hint=hint)

    def _list(self, key: str) -> list[Any]:
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(key, f"must be a list, not {_kind(value)}")
        return value

    def _entry_of(self, key: str, value: Any) -> Entry:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.error(key, f"must be a mapping, not {_kind(value)}")
        return Entry(self.file, self.path_to(key), value)


def read_document(file: Path) -> Entry:
    """The YAML document in a file."""
    # It takes long to load, and a dispatcher inside of a cluster does without it.
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ComputeTargetException(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ComputeTargetException(f"{file} is not text in UTF-8") from None
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ComputeTargetException(f"{file}{line} is not valid YAML: {problem}") from None
    if document is not None and not isinstance(document, dict):
        raise ComputeTargetException(f"{file} is not a kubeconfig file: it contains {_kind(document)}")
    return Entry(file, "", document or {})


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(value), type(value).__name__)
