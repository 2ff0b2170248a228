"""Refusals of what v1 had and this release does not have."""

from __future__ import annotations

from typing import NoReturn

from trainmaster.job.errors import TrainingException


def parallel_task() -> NoReturn:
    """Refuses parallel tasks."""
    raise TrainingException(
        "ParallelTaskConfiguration is not supported",
        hint="Use MpiConfiguration, TensorflowConfiguration or PyTorchConfiguration.",
    )


def spark(what: str) -> NoReturn:
    """Refuses Spark."""
    raise TrainingException(
        f"framework {what!r} is not supported: Trainmaster has no Spark",
        hint="Use framework='Python' and start Spark in the script.",
    )
