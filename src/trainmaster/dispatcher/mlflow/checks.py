"""What MLflow's server checks of names and values, with its messages."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.dispatcher.mlflow.requests import missing, wrong_value

LONGEST_KEY = 250
LONGEST_PARAM = 6000
LONGEST_TAG = 8000
LONGEST_EXPERIMENT_NAME = 500
LONGEST_EXPERIMENT_TAG = 20_000
MOST_PARAMS_OR_TAGS = 100
"""In one batch."""

_NAME = re.compile(r"[/\w.\- :]*")
_CHARACTERS = (
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) "
    "and slashes (/)."
)


def check_name(name: str, path: str = "key") -> None:
    """Check the name of a parameter, tag or metric; `path` says where it is in the request."""
    if not _NAME.fullmatch(name):
        raise invalid(path, name, _CHARACTERS)
    plain = posixpath.normpath(name)
    if plain != name or plain == "." or plain.startswith(("..", "/")):
        raise invalid(
            path,
            name,
            "Names may be treated as files in certain cases, and must not resolve to other names when treated as "
            f"such. This name would resolve to {plain!r}",
        )


def check_length(what: str, limit: int, value: str) -> None:
    """Check how long a text is."""
    if len(value) > limit:
        raise MlflowError(WRONG, f"'{what}' exceeds the maximum length of {limit} characters")


def check_param(key: str, value: str, path: str = "") -> str:
    """Check a parameter, and return its value. As in MLflow, a value that is too long is cut off."""
    check_name(key, f"{path}.key" if path else "key")
    check_length("Param key", LONGEST_KEY, key)
    return value[:LONGEST_PARAM]


def check_tag(key: str, value: str, path: str = "") -> str:
    """Check a tag of a run, and return its value. As in MLflow, a value that is too long is cut off."""
    where = f"{path}.key" if path else "key"
    check_name(key, where)
    check_length(where, LONGEST_KEY, key)
    return value[:LONGEST_TAG]


def check_experiment_tag(key: str, value: str) -> None:
    """Check a tag of an experiment."""
    check_name(key)
    check_length("key", LONGEST_KEY, key)
    check_length("value", LONGEST_EXPERIMENT_TAG, value)


def check_experiment_name(name: str) -> None:
    """Check the name of an experiment."""
    check_length("name", LONGEST_EXPERIMENT_NAME, name)


def read_params(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The parameters of a batch, checked."""
    pairs = [(key, check_param(key, value, path)) for key, value, path in _read_entries("params", entries)]
    counts = Counter(key for key, _ in pairs)
    repeated = [key for key, count in counts.items() for _ in range(count - 1)]
    if repeated:
        raise MlflowError(
            WRONG,
            f"Duplicate parameter keys have been submitted: {repeated}. Please ensure the request contains only one "
            "param value per param key.",
        )
    return dict(pairs)


def read_tags(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The tags of a batch, checked; of those with the same name the last one counts."""
    return {key: check_tag(key, value, path) for key, value, path in _read_entries("tags", entries)}


def read_pairs(name: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Keys and values, not checked any further."""
    return {key: value for key, value, _ in _read_entries(name, entries)}


def _read_entries(name: str, entries: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    found = []
    for index, entry in enumerate(entries):
        path = f"{name}[{index}]"
        key, value = entry.get("key"), entry.get("value", "")
        if key is None or key == "":
            raise missing(f"{path}.key")
        if not isinstance(key, str):
            raise wrong_value(f"{path}.key", key)
        if value is not None and not isinstance(value, str):
            raise wrong_value(f"{path}.value", value)
        found.append((key, value or "", path))
    return found


def invalid(path: str, value: Any, why: str = "") -> MlflowError:
    """The error for a value of the right type that is not allowed."""
    shown = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return MlflowError(WRONG, f"Invalid value {shown} for parameter '{path}' supplied{f': {why}' if why else '.'}")
