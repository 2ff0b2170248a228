"""What can be submitted: anything that compiles to a job or a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import JobSpec

if TYPE_CHECKING:
    from trainmaster.tuning.spec import SweepSpec


def compile_config(config: Any, overrides: Mapping[str, Any]) -> JobSpec | SweepSpec:
    """The job or sweep that a configuration describes."""
    if not hasattr(config, "compile"):
        raise UserErrorException(
            f"a {type(config).__name__} cannot be submitted",
            hint="Submit an Estimator, PyTorch, TensorFlow, SKLearn, ScriptRunConfig or HyperDriveConfig.",
        )
    spec: JobSpec | SweepSpec = config.compile(overrides)
    return spec
