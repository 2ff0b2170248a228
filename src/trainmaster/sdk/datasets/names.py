"""Which names and labels datasets, inputs and outputs may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.notices import warn

_INPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Programs have variables of these names.
_DOUBTFUL = frozenset({"path", "home", "user", "shell", "lang", "pwd", "tmpdir", "pythonpath", "ld_library_path"})


def check_name(name: Any) -> str:
    """`name`, if it is text; the workspace decides whether it can name a dataset."""
    if not isinstance(name, str):
        raise UserErrorException(f"the name of a dataset must be text, not {name!r}")
    return name


def check_variable_name(name: Any, what: str) -> str:
    """`name` if it can name a `what`: it becomes a variable of the job."""
    if not isinstance(name, str) or not _INPUT.fullmatch(name):
        raise UserErrorException(
            f"{name!r} cannot be the name of a dataset {what}",
            hint="Use letters, digits and underscores, a letter or underscore first.",
        )
    if name.lower() in _DOUBTFUL:
        warn(
            f"{name!r} is a doubtful name for a dataset {what}: it is also the name of a variable that programs use. "
            f"That variable is not changed; the script finds the data in its arguments and in "
            f"run.{what}_datasets[{name!r}]"
        )
    return name


def check_tags(tags: Any) -> dict[str, str]:
    """`tags` with names and values as text."""
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        raise UserErrorException(f"tags must be a dict, not {tags!r}")
    return {str(key): str(value) for key, value in tags.items()}
