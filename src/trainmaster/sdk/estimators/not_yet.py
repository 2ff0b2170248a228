"""What v1 had and this release has not yet: the one place where that is said."""

from __future__ import annotations

from typing import NoReturn

from trainmaster.job.errors import TrainingException


def notebook_script(parameter: str, script: str) -> NoReturn:
    """Notebooks as entry scripts need the notebook extra."""
    exported = f"{script[: -len('.ipynb')]}.py"
    raise TrainingException(
        f"{parameter} {script!r} is a notebook, which needs trainmaster[notebook] of a later release",
        hint=f"Export it with 'jupyter nbconvert --to script {script}', and give {exported!r}.",
    )


def parallel_task() -> NoReturn:
    """Parallel tasks are another kind of launch plan."""
    raise TrainingException(
        "ParallelTaskConfiguration is not supported",
        hint="Use MpiConfiguration, TensorflowConfiguration or PyTorchConfiguration.",
    )


def spark(what: str) -> NoReturn:
    """There is no Spark engine."""
    raise TrainingException(
        f"framework {what!r} is not supported: there is no Spark here",
        hint="Use framework='Python' and start Spark in the script.",
    )
