"""Exit codes, and which error leads to which. `trainmaster --help` lists the same codes."""

from __future__ import annotations

from trainmaster.job.errors import (
    ActivityCanceledException,
    ActivityFailedException,
    ModelNotFoundException,
    RunNotFoundException,
    ServiceException,
    TrainmasterError,
    WorkspaceException,
)

OK = 0
RUN_FAILED = 1
USAGE = 2
RUN_CANCELED = 3
NOT_FOUND = 4
UNUSABLE = 5
FAULT = 70
INTERRUPTED = 130
# What a shell reports for a program that a closed pipe ended.
BROKEN_PIPE = 141

_CODES: tuple[tuple[type[TrainmasterError], int], ...] = (
    (ActivityFailedException, RUN_FAILED),
    (ActivityCanceledException, RUN_CANCELED),
    (RunNotFoundException, NOT_FOUND),
    (ModelNotFoundException, NOT_FOUND),
    (ServiceException, UNUSABLE),
    (WorkspaceException, UNUSABLE),
)


def exit_code(error: TrainmasterError) -> int:
    """The exit code for an error."""
    if error.headline.startswith(("ComputeTargetNotFound", "WebserviceNotFound", "ImageNotFound")):
        return NOT_FOUND
    return next((code for kind, code in _CODES if isinstance(error, kind)), USAGE)


def code_of_status(status: str) -> int:
    """The exit code for the final status of a run that was waited for.

    >>> code_of_status("Completed"), code_of_status("Failed"), code_of_status("Canceled")
    (0, 1, 3)
    """
    return {"Completed": OK, "Canceled": RUN_CANCELED}.get(status, RUN_FAILED)
