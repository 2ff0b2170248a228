"""The environment variables that the user sets."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.estimators import values
from trainmaster.shared import measuring
from trainmaster.shared.notices import warn

_RESERVED = ("AZUREML_", "TRAINMASTER_")
# Trainmaster's variables that users may set, and their values.
_OPTIONS = {"TRAINMASTER_TF_CHIEF": ("chief", "master"), "TRAINMASTER_GPUS": ("process", "node")}

# Variables with any value: modules to preload (docs/internals/sweeps.md), and how often to measure.
_FREE = ("TRAINMASTER_WARM_IMPORTS", measuring.VARIABLE)


def environment_variables(name: str, given: Any) -> dict[str, str]:
    """`given` as environment variables."""
    variables = values.mapping(name, given)
    for key, value in variables.items():
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise UserErrorException(f"{name} has an invalid name of a variable: {key!r}")
        if not isinstance(value, str):
            raise UserErrorException(
                f"{name}[{key!r}] must be a string, not {type(value).__name__}", hint=f"Write {str(value)!r}."
            )
        if "\0" in value:
            raise UserErrorException(f"{name}[{key!r}] must not contain a NUL character")
        if key in _OPTIONS and value not in _OPTIONS[key]:
            raise UserErrorException(f"{name}[{key!r}] must be {' or '.join(map(repr, _OPTIONS[key]))}, not {value!r}")
    _check_measuring(name, variables)
    return variables


def _check_measuring(name: str, variables: dict[str, str]) -> None:
    try:
        measuring.parse_sample_seconds(variables.get(measuring.VARIABLE, ""))
    except ValueError:
        raise UserErrorException(
            f"{name}[{measuring.VARIABLE!r}] cannot be {variables[measuring.VARIABLE]!r}",
            hint="It is off, on, or the seconds between two measurements, such as 10.",
        ) from None


def warn_reserved(variables: dict[str, str]) -> None:
    """Warns of variables that a run sets itself: the run's values are used."""
    reserved = sorted(name for name in variables if name.startswith(_RESERVED) and name not in (*_OPTIONS, *_FREE))
    if reserved:
        warn(f"environment_variables: a run may set {', '.join(reserved)} itself; then the run's value is used")
