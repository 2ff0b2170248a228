"""Calling an operation of a dispatcher for a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.server.dispatchers import decode
from trainmaster.server.errors import refuse
from trainmaster.server.permissions import Caller

Arguments = dict[str, Any]


def adapt(operation: str, arguments: Arguments, caller: Caller) -> Arguments:
    """The arguments that the dispatcher gets: what a client says about itself is not believed."""
    change = _ADAPTED.get(operation)
    if change is not None:
        arguments = change(arguments, caller)
    if caller.scope is not None and "run_id" in arguments:
        # A job can only act for its own run.
        arguments = {**arguments, "run_id": caller.scope.run_id}
    return arguments


def _set_submitter(arguments: Arguments, caller: Caller) -> Arguments:
    run = arguments.get("run")
    return {**arguments, "run": {**run, "submitted_by": caller.name}} if isinstance(run, Mapping) else arguments


def _set_submitters(arguments: Arguments, caller: Caller) -> Arguments:
    runs = arguments.get("runs")
    if not isinstance(runs, list):
        return arguments
    changed = [{**run, "submitted_by": caller.name} if isinstance(run, Mapping) else run for run in runs]
    return {**arguments, "runs": changed}


def _keep_within_run(arguments: Arguments, caller: Caller) -> Arguments:
    if arguments.get("of_run") is not True:
        raise refuse(403, "over HTTP only files of the own run can become a model")
    return arguments


_ADAPTED: Mapping[str, Callable[[Arguments, Caller], Arguments]] = {
    "runs.submit": _set_submitter,
    "sweeps.submit": _set_submitter,
    "runs.create": _set_submitters,
    "models.keep": _keep_within_run,
}

_HEAD = b'{"id": 1, "result": '


def cut_result(line: bytes) -> bytes | None:
    """The result in the answer of a dispatcher as JSON text, without parsing it; None if the answer is an error.

    >>> cut_result(b'{"id": 1, "result": [1, 2]}' + bytes([10]))
    b'[1, 2]'
    """
    return line[len(_HEAD) : -2] if line.startswith(_HEAD) else None


def error_in(line: bytes) -> dict[str, Any]:
    """The error in the answer of a dispatcher."""
    found: dict[str, Any] = decode(line)["error"]
    return found
