"""From what the agents left behind to the state a run ends in. Pure."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.records import RunError, Status

_MISSING_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([^'.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: Status
    error: RunError | None = None
    warnings: tuple[str, ...] = ()


def outcome(
    results: Sequence[Mapping[str, Any] | None],
    *,
    cancel_requested: bool,
    time_limit: int | None,
    disk_full: bool = False,
    upload_error: str = "",
    own_packages: bool = False,
    services: Collection[int] = (),
) -> Outcome:
    """The outcome of a run whose nodes left `results` (none: the agent was killed before it could write one).

    `services` are the nodes that had only services, which are ended by us when the others are done.
    """
    warnings = tuple(text for number, result in enumerate(results) for text in _warnings(number, result))
    numbers = sorted(range(len(results)), key=lambda number: _when_failed(results[number]))
    for number in numbers:
        if number in services and _was_stopped(results[number]):
            continue
        found = _failure(number, results[number], cancel_requested, time_limit)
        if found is not None:
            return Outcome(found.status, _explained(found.error, disk_full, own_packages), warnings)
    if upload_error:
        message = f"the script ended well, but its data could not be uploaded\n{upload_error}"
        return Outcome(Status.FAILED, RunError("UploadFailed", message), warnings)
    return Outcome(Status.COMPLETED, None, warnings)


def ended_well(result: Mapping[str, Any] | None) -> bool:
    """Whether a node did all it had to."""
    return result is not None and result.get("reason") == "exited" and not result.get("first_failure")


def _was_stopped(result: Mapping[str, Any] | None) -> bool:
    return result is not None and result.get("reason") == "cancelled"


def _when_failed(result: Mapping[str, Any] | None) -> float:
    """The cause comes first: a lost agent, then the earliest failure; who was only told to stop comes last."""
    if result is None:
        return 0.0
    if _was_stopped(result):
        return math.inf
    failure = result.get("first_failure") or {}
    ends = [each["ended_at"] for each in result.get("processes", []) if each.get("rank") == failure.get("rank")]
    return float(next((end for end in ends if end), result.get("ended_at") or 0.0))


def _failure(
    node: int, result: Mapping[str, Any] | None, cancel_requested: bool, time_limit: int | None
) -> Outcome | None:
    if result is None:
        return _agent_lost(node, cancel_requested)
    reason = result.get("reason")
    if reason == "error":
        error = result.get("error") or {}
        parts = [error.get(key, "") for key in ("headline", "cause", "hint")]
        return Outcome(
            Status.FAILED,
            RunError("StartError", "\n".join(part for part in parts if part), {"node": node}),
        )
    if reason == "timeout":
        message = f"the run was cancelled: it took longer than max_run_duration_seconds={time_limit}"
        return Outcome(Status.CANCELED, RunError("MaxRunDurationExceeded", message, {"node": node}))
    if reason == "cancelled":
        return _told_to_stop(node, cancel_requested)
    failure = result.get("first_failure")
    if failure:
        return Outcome(Status.FAILED, script_error(node, failure))
    return None


def _explained(error: RunError | None, disk_full: bool, own_packages: bool) -> RunError | None:
    """The error with what is known beyond it."""
    if error is None:
        return None
    message = error.message
    if disk_full:
        message += "\nThe disk of the workspace was full (no space left on device)."
    missing = _MISSING_MODULE.search(str(error.details.get("tail", "")))
    if missing and own_packages:
        message += (
            f"\nThe run's environment has no '{missing[1]}': add the package that brings it to pip_packages (--pip), "
            "or run in a Python of yours with user_managed=True (--user-managed)."
        )
    return replace(error, message=message)


def _agent_lost(node: int, cancel_requested: bool) -> Outcome:
    if cancel_requested:
        return Outcome(Status.CANCELED)
    message = (
        f"the agent of node {node} was killed (SIGKILL, or the machine went down); its processes were ended with it\n"
        "Submit the run again."
    )
    return Outcome(Status.FAILED, RunError("NodeAgentLost", message, {"node": node}))


def _told_to_stop(node: int, cancel_requested: bool) -> Outcome:
    if cancel_requested:
        return Outcome(Status.CANCELED)
    message = f"the agent of node {node} was told to stop (SIGTERM) by something other than Trainmaster"
    return Outcome(Status.FAILED, RunError("NodeStopped", message, {"node": node}))


def script_error(node: int, failure: Mapping[str, Any]) -> RunError:
    """The error of a script that did not end well: which rank, how, and its last lines."""
    rank, code, number = failure.get("rank", 0), failure.get("exit_code"), failure.get("signal")
    # Under MPI the agent's node is not the rank's.
    node = failure.get("node", node)
    if failure.get("out_of_memory"):
        how = "was killed by the kernel because the memory was used up (out of memory)"
        kind = "OutOfMemory"
    elif number is not None:
        how = f"was killed by {signal_name(number)}"
        kind = "ScriptKilled"
    else:
        how = f"ended with exit code {code}"
        kind = "ScriptFailed"
    tail = str(failure.get("tail") or "")
    message = f"rank {rank} on node {node} {how}"
    if tail.strip():
        message += f"\nThe last lines it wrote:\n{tail.rstrip()}"
    details = {
        "rank": rank,
        "node": node,
        "exit_code": code,
        "signal": signal_name(number) if number is not None else None,
        "tail": tail,
    }
    return RunError(kind, message, details)


def signal_name(number: int) -> str:
    """
    >>> signal_name(9)
    'SIGKILL'
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _warnings(node: int, result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return []
    found = []
    if result.get("reason") == "exited" and result.get("killed"):
        found.append(f"node {node}: {result['killed']} processes that the script left behind were ended")
    if result.get("survivors"):
        found.append(f"node {node}: these processes could not be ended: {result['survivors']}")
    return found
