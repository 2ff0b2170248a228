"""What MLflow's registry checks of names, versions, tags, aliases and stages, with its messages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.dispatcher.mlflow.checks import check_length, check_name, invalid
from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.dispatcher.mlflow.requests import wrong_value
from trainmaster.shared.records import STAGES, find_stage

LONGEST_NAME = 256
LONGEST_KEY = 250
LONGEST_VALUE = 100_000
LONGEST_ALIAS = 255
LATEST = "latest"
"""An alias that every name has: its newest version."""

_ALIAS = re.compile(r"[\w-]+")
_VERSION_ALIAS = re.compile(r"[vV]\d+")
_LARGEST_VERSION = 2**31


def check_model_name(name: str, argument: str = "name") -> str:
    """A name that a model can have. It becomes a part of addresses, so it is never a path."""
    if not name.strip():
        raise MlflowError(WRONG, f"Missing value for required parameter '{argument}'.")
    if "/" in name or ":" in name:
        raise MlflowError(WRONG, f"Invalid model name '{name}'. Names cannot contain '/' or ':'.")
    plain = posixpath.normpath(name)
    if plain != name or plain == "." or plain.startswith(".."):
        raise invalid(
            "name",
            name,
            "Names may be treated as files in certain cases, and must not resolve to other names when treated as "
            f"such. This name would resolve to {plain!r}",
        )
    check_length("name", LONGEST_NAME, name)
    if any(ord(sign) < 32 or 127 <= ord(sign) < 160 or 0xD800 <= ord(sign) < 0xE000 for sign in name):
        raise invalid("name", name, "Names cannot contain control characters.")
    return name


def read_version(text: str) -> int:
    """The number of a version; one that cannot be there is 0.

    >>> read_version("12"), read_version("-3")
    (12, 0)
    """
    try:
        number = int(text)
    except ValueError:
        raise MlflowError(WRONG, f"Parameter 'version' must be an integer, got '{text[:1000]}'.") from None
    return number if 0 < number < _LARGEST_VERSION else 0


def check_model_tag(key: str, value: str) -> None:
    """Check a tag of a name or of a version."""
    check_name(key)
    check_length("key", LONGEST_KEY, key)
    check_length("value", LONGEST_VALUE, value)


def read_model_tags(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The tags of a request; of those with the same key the last one counts."""
    found: dict[str, str] = {}
    for entry in entries:
        key, value = entry.get("key", ""), entry.get("value", "")
        if not isinstance(key, str) or not isinstance(value, str):
            raise wrong_value("tags", [dict(each) for each in entries])
        check_model_tag(key, value)
        found[key] = value
    return found


def check_alias(alias: str) -> None:
    """Check the name of an alias."""
    if not alias:
        raise MlflowError(WRONG, "Registered model alias name cannot be empty.")
    if not _ALIAS.fullmatch(alias):
        raise MlflowError(
            WRONG,
            f"Invalid alias name: '{alias}'. Names may only contain alphanumerics, underscores (_), and dashes (-).",
        )
    check_length("Registered model alias name", LONGEST_ALIAS, alias)


def check_new_alias(alias: str) -> None:
    """Check an alias that a version is to have."""
    check_alias(alias)
    if alias.lower() == LATEST:
        raise MlflowError(WRONG, "'latest' alias name (case insensitive) is reserved.")
    if _VERSION_ALIAS.fullmatch(alias):
        raise MlflowError(WRONG, f"Version alias name '{alias}' is reserved.")


def read_stage(text: str) -> str:
    """A stage in MLflow's own case.

    >>> read_stage("pROduction")
    'Production'
    """
    found = find_stage(text)
    if found is None:
        raise MlflowError(
            WRONG, f"Invalid Model Version stage: {text[:1000]}. Value must be one of {', '.join(STAGES)}."
        )
    return found
