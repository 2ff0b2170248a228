"""The name of a compute target, from a name or an object."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import ComputeTargetException, UserErrorException
from trainmaster.sdk.estimators.values import text

LOCAL = "local"


def target_name(parameter: str, target: Any) -> str:
    """The name of `target`: a string, or any object that has a name."""
    if isinstance(target, str):
        return text(parameter, target)
    if type(target).__name__ == "HDInsightCompute" or getattr(target, "type", None) == "HDInsight":
        raise ComputeTargetException(
            f"{parameter} has the unsupported type HDInsight", hint="Use a target of this machine, such as 'local'."
        )
    name = getattr(target, "name", None)
    if isinstance(target, type) or not isinstance(name, str):
        raise UserErrorException(
            f"{parameter} must be the name of a target or a target object, not {target!r}",
            hint="Write compute_target='local'.",
        )
    return text(f"{parameter}.name", name)
