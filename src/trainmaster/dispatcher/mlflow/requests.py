"""The arguments of a request, read as MLflow reads them.

They come from JSON or from a query: numbers may be texts there, and a list with one element may be the element.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError

HINT = "See the API docs for more information about request parameters."
"""The end of messages about arguments."""


@dataclass(frozen=True)
class Request:
    """One request to an endpoint."""

    arguments: Mapping[str, Any]
    user: str = ""
    """Who sends it; empty if that is not known."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the path."""
    workspace: str = ""
    """The name of the workspace on its server; empty without a server."""
    is_query: bool = False
    """Whether the arguments are those of a GET, where a list with one element is the element."""

    def has(self, name: str) -> bool:
        """Whether an argument was given."""
        return self.arguments.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        value = self.arguments.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise wrong_value(name, value)
        return value

    def require_text(self, name: str) -> str:
        """A text that must be given and not be empty."""
        value = self.arguments.get(name)
        if value is None or value == "":
            raise missing(name)
        return self.text(name)

    def run_id(self) -> str:
        """The run that a request is about. Older clients call it `run_uuid`."""
        name = "run_id" if self.has("run_id") or not self.has("run_uuid") else "run_uuid"
        return self.require_text(name)

    def integer(self, name: str, default: int | None = None) -> int | None:
        """A whole number."""
        value = self.arguments.get(name)
        if value is None:
            return default
        return read_integer(name, value)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.arguments.get(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if self.is_query and str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        raise wrong_value(name, value)

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self.arguments.get(name)
        if value is None:
            return []
        found = [value] if isinstance(value, str) and self.is_query else value
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise wrong_value(name, value)
        return found

    def objects(self, name: str) -> list[Mapping[str, Any]]:
        """A list of objects."""
        value = self.arguments.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not set(map(type, value)) <= {dict}:
            raise wrong_value(name, value)
        return value


def read_integer(name: str, value: Any) -> int:
    """A whole number, which JSON of MLflow's messages may have as a text."""
    if isinstance(value, bool) or not isinstance(value, (int, str, float)):
        raise wrong_value(name, value)
    try:
        number = int(value)
    except (ValueError, OverflowError):
        raise wrong_value(name, value) from None
    if isinstance(value, float) and number != value:
        raise wrong_value(name, value)
    return number


def missing(name: str) -> MlflowError:
    """The error for an argument that was not given."""
    return MlflowError(WRONG, f"Missing value for required parameter '{name}'. {HINT}")


def wrong_value(name: str, value: Any) -> MlflowError:
    """The error for an argument of another type."""
    shown = json.dumps(value, default=str, sort_keys=True, separators=(",", ":"))[:200]
    return MlflowError(
        WRONG,
        f"Invalid value {shown} for parameter '{name}' supplied:  "
        f"Hint: Value was of type '{type(value).__name__}'. {HINT}",
    )
