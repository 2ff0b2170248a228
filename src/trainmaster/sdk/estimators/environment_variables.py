"""The variables a user asks for."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.estimators import values
from trainmaster.shared.notices import warn

_RESERVED = ("AZUREML_", "TRAINMASTER_")
# Those of our names that are for users to set, and what they may be.
_OPTIONS = {"TRAINMASTER_TF_CHIEF": ("chief", "master"), "TRAINMASTER_GPUS": ("process", "node")}

# Those that may be any text: module names for a warm Python (docs/internals/sweeps.md).
_FREE = ("TRAINMASTER_WARM_IMPORTS",)


def environment_variables(name: str, given: Any) -> dict[str, str]:
    """`given` as variables that a process can have."""
    variables = values.mapping(name, given)
    for key, value in variables.items():
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise UserErrorException(f"{name} has a name that no variable can have: {key!r}")
        if not isinstance(value, str):
            raise UserErrorException(
                f"{name}[{key!r}] must be a string, not {type(value).__name__}", hint=f"Write {str(value)!r}."
            )
        if "\0" in value:
            raise UserErrorException(f"{name}[{key!r}] must not hold a NUL character")
        if key in _OPTIONS and value not in _OPTIONS[key]:
            raise UserErrorException(f"{name}[{key!r}] must be {' or '.join(map(repr, _OPTIONS[key]))}, not {value!r}")
    return variables


def warn_reserved(variables: dict[str, str]) -> None:
    """A run sets some of these names itself, and its own values win."""
    reserved = sorted(name for name in variables if name.startswith(_RESERVED) and name not in (*_OPTIONS, *_FREE))
    if reserved:
        warn(f"environment_variables: where a run sets {', '.join(reserved)} itself, its own value is used")
