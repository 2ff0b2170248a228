"""YAML whose values know their lines, so that errors can name them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmaster.job.errors import UserErrorException

_POWER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


class FileMistake(UserErrorException):
    """A mistake in a file. It names the place, and keys as the file has them."""


@dataclass(frozen=True)
class Marked:
    """A value of a file: plain data, and its place in the file."""

    value: Any
    """A scalar, a list of Marked, or a dict of text to Marked."""
    line: int
    key: str = ""
    """The path to the value: `policy.slack_factor`."""
    file: str = ""
    text: str = ""
    """A scalar as it is written: 3.10, which is the number 3.1."""

    @property
    def place(self) -> str:
        """The place as error messages show it: `sweep.yaml, line 7, policy.slack_factor`."""
        if not self.line:
            # Not of a file, but of an option.
            return self.file
        return f"{self.file}, line {self.line}" + (f", {self.key}" if self.key else "")

    def plain(self) -> Any:
        """The value without the marks."""
        if isinstance(self.value, dict):
            return {name: item.plain() for name, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def error(self, message: str, cause: str = "", hint: str = "") -> FileMistake:
        """An error that names the place."""
        return FileMistake(f"{self.place}: {message}", cause=cause, hint=hint)


def read_marked(path: Path) -> Marked:
    """The document in the file. Raises UserErrorException if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserErrorException(f"{path} is not text in UTF-8") from None
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read: {error.strerror}") from None
    node = _compose(text, str(path))
    if node is None:
        raise UserErrorException(f"{path} is empty")
    return _Reader(str(path)).mark(node, "")


def parse_marked(text: str, source: str, key: str) -> Marked:
    """The value in the text of an option, which `source` names."""
    node = _compose(text, source)
    return replace(_Reader(source).mark(node, key), line=0)


def _compose(text: str, source: str) -> Any:
    import yaml

    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}, line {mark.line + 1}" if mark else source
        raise UserErrorException(f"{place}: this is not YAML", cause=str(error.problem or error)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise UserErrorException(f"{source}: this is not YAML", cause=str(error).splitlines()[0]) from None


class _Reader:
    """Converts the nodes of a YAML document to marked values."""

    def __init__(self, file: str) -> None:
        import yaml

        self._yaml = yaml
        self._file = file
        self._ancestors: list[Any] = []

    def mark(self, node: Any, key: str) -> Marked:
        line = node.start_mark.line + 1
        if any(node is outer for outer in self._ancestors):
            raise UserErrorException(f"{self._file}, line {line}: {key or 'the document'} contains itself")
        self._ancestors.append(node)
        value = self._value(node, key, line)
        self._ancestors.pop()
        text = "" if isinstance(node.value, list) else str(node.value)
        return Marked(value, line, key, self._file, text)

    def _value(self, node: Any, key: str, line: int) -> Any:
        if isinstance(node, self._yaml.SequenceNode):
            return [self.mark(item, f"{key}[{n}]") for n, item in enumerate(node.value)]
        if not isinstance(node, self._yaml.MappingNode):
            return self._scalar(node, key, line)
        found: dict[str, Marked] = {}
        for name_node, item in node.value:
            name = str(name_node.value)
            if name in found:
                again = name_node.start_mark.line + 1
                raise UserErrorException(
                    f"{self._file}, line {again}: {name} is already set in line {found[name].line}"
                )
            found[name] = self.mark(item, f"{key}.{name}" if key else name)
        return found

    def _scalar(self, node: Any, key: str, line: int) -> Any:
        if node.style is None and _POWER.fullmatch(node.value):
            # YAML 1.1 reads 1e-3 as text, which is never intended.
            return float(node.value)
        try:
            return self._yaml.SafeLoader("").construct_object(node)
        except (self._yaml.YAMLError, ValueError) as error:
            what = f"{key}: " if key else ""
            raise UserErrorException(
                f"{self._file}, line {line}: {what}{node.value!r} cannot be read", cause=str(error).splitlines()[0]
            ) from None
