"""Refusals of what v1 had and this release does not have."""

from __future__ import annotations

from typing import NoReturn

from trainmaster.job.errors import TrainingException


def notebook_script(parameter: str, script: str) -> NoReturn:
    """Refuses notebooks as entry scripts."""
    exported = f"{script[: -len('.ipynb')]}.py"
    raise TrainingException(
        f"{parameter} {script!r} is a notebook, which needs trainmaster[notebook] of a later release",
        hint=f"Export it with 'jupyter nbconvert --to script {script}', and give {exported!r}.",
    )


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
