"""Loads the full Trainmaster in a job, if it is installed in the job's environment."""

import sys

from trainmaster.job.errors import RunEnvironmentException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def full_run_class(wanted: str) -> "Any":
    """The Run class of the full Trainmaster; `wanted` is named in the error if it is not installed."""
    full_package(wanted)
    return sys.modules["trainmaster.sdk.run.run"].Run


def full_package(wanted: str) -> "Any":
    """The package of the full Trainmaster; `wanted` is named in the error if it is not installed."""
    import trainmaster
    from trainmaster.job.lookup import has_sdk

    has_sdk()
    try:
        # By its name, because the job side never depends on the SDK.
        __import__("trainmaster.sdk.run.run")
    except (ImportError, SyntaxError) as error:
        raise RunEnvironmentException(
            "{} needs the full Trainmaster, which cannot be imported in this job".format(wanted),
            inner_exception=error,
            cause="{}: {}".format(type(error).__name__, error),
            hint="Add 'trainmaster' to the packages of the job (Python 3.11 or newer), or do it outside "
            "of the job. Run.get_context() works in every job.",
        ) from error
    return trainmaster
