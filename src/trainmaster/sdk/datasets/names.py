"""Names of datasets, of inputs and outputs, and their labels: what may be written for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.notices import warn

_INPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# As variables they would stand in the way of programs.
_DOUBTFUL = frozenset({"path", "home", "user", "shell", "lang", "pwd", "tmpdir", "pythonpath", "ld_library_path"})


def new_name(name: Any) -> str:
    """`name`, if it is a text; the workspace says whether it can name a dataset."""
    if not isinstance(name, str):
        raise UserErrorException(f"the name of a dataset has to be a text, not {name!r}")
    return name


def variable_name(name: Any, what: str) -> str:
    """`name` if it can name a `what`: it becomes a variable of the job."""
    if not isinstance(name, str) or not _INPUT.fullmatch(name):
        raise UserErrorException(
            f"{name!r} cannot be the name of a dataset {what}",
            hint="Use letters, digits and underscores, a letter or underscore first.",
        )
    if name.lower() in _DOUBTFUL:
        warn(
            f"{name!r} is a doubtful name for a dataset {what}: programs have a variable of that name already. "
            f"It is left as it is; the script finds the data in its arguments and in run.{what}_datasets[{name!r}]"
        )
    return name


def checked_tags(tags: Any) -> dict[str, str]:
    """`tags` as texts by name."""
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        raise UserErrorException(f"tags have to be a dict, not {tags!r}")
    return {str(key): str(value) for key, value in tags.items()}
