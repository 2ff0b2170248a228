"""Determines the final state of a run from the results of its agents. Pure."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.dispatcher.runs.failure_hints import Surroundings, hint_for
from trainmaster.dispatcher.runs.hangs import early_ends, hang_error, is_early, name_ranks
from trainmaster.dispatcher.runs.last_words import exception_in, exceptions_in, last_line, message_in
from trainmaster.dispatcher.runs.memory_words import describe_memory, lacks_memory
from trainmaster.engines import Ending
from trainmaster.job.agent import cause
from trainmaster.job.agent.ranks import signal_name
from trainmaster.shared.records import RunError, Status

_ALSO_NAMED = 4
# With these exit codes the last line is a message: of sys.exit("text"), an argument parser, or a shell.
_EXPLAINED = (1, 2, 126, 127)
_STOPPED = frozenset({"NodeAgentLost", "NodeStopped", "ScriptKilled", "LauncherFailed"})


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: Status
    error: RunError | None = None
    warnings: tuple[str, ...] = ()
    again: bool = False
    """Whether another attempt follows regardless of `max_retries`, because the nodes were taken away."""


def outcome(
    results: Sequence[Mapping[str, Any] | None],
    *,
    cancel_requested: bool,
    time_limit: int | None,
    disk_full: bool = False,
    upload_error: str = "",
    processes: int = 1,
    surroundings: Surroundings | None = None,
    services: Collection[int] = (),
    ending: Ending | None = None,
) -> Outcome:
    """The outcome of a run whose nodes left `results` (None: the agent was killed before it wrote one).

    If the run has several `processes`, the message names the rank of an exception. `surroundings` are used for hints.
    `services` are the nodes that had only services, which Trainmaster ends when the other nodes are done. `ending` is
    what the engine knows; it takes precedence if the processes were ended from outside.
    """
    warnings = tuple(text for number, result in enumerate(results) for text in _warnings(number, result))
    numbers = sorted(range(len(results)), key=lambda number: _when_failed(results[number]))
    for number in numbers:
        if number in services and _was_stopped(results[number]):
            continue
        found = _failure(number, results, cancel_requested, time_limit, processes)
        if found is not None and cancel_requested and _was_told(found.error):
            return Outcome(Status.CANCELED, None, warnings)
        if found is not None and ending is not None and not cancel_requested and _from_outside(found.error):
            return Outcome(ending.status, ending.error, warnings, again=ending.again)
        if found is not None:
            return Outcome(found.status, _explain(found.error, disk_full, surroundings), warnings)
    if upload_error:
        message = f"the script ended well, but its data could not be uploaded\n{upload_error}"
        return Outcome(Status.FAILED, RunError("UploadFailed", message), warnings)
    return Outcome(Status.COMPLETED, None, warnings)


def name_process(found: Outcome, names: Sequence[str]) -> Outcome:
    """Adds the name by which users know the failed process, such as `ps 0 (rank 2) on node 1 ...`."""
    error = found.error
    rank = error.details.get("rank") if error else None
    if error is None or not isinstance(rank, int) or rank >= len(names) or names[rank] == f"rank {rank}":
        return found
    message = re.sub(rf"\Arank {rank}\b", f"{names[rank]} (rank {rank})", error.message)
    return replace(found, error=replace(error, message=message))


def _was_told(error: RunError | None) -> bool:
    """Whether a process ended because of SIGTERM, which some engines send to processes and agent together."""
    if error is None or error.code not in ("ScriptKilled", "ScriptFailed"):
        return False
    return error.details.get("signal") == "SIGTERM" or error.details.get("exit_code") == 128 + signal.SIGTERM


def _from_outside(error: RunError | None) -> bool:
    """Whether the cause may lie outside of the run: its processes were stopped or disappeared."""
    return error is not None and error.code in _STOPPED


def has_succeeded(result: Mapping[str, Any] | None) -> bool:
    """Whether the processes of a node ended without an error."""
    return result is not None and result.get("reason") == "exited" and not result.get("first_failure")


def _was_stopped(result: Mapping[str, Any] | None) -> bool:
    return result is not None and result.get("reason") == "cancelled"


def _when_failed(result: Mapping[str, Any] | None) -> float:
    """The sort key of results: lost agents first, then failures by time; nodes that were stopped come last."""
    if result is None:
        return 0.0
    if _was_stopped(result):
        return math.inf
    first = cause.first_failure(result.get("processes", []))
    return float(result.get("ended_at") or 0.0 if first is None else cause.failure_time(first))


def _failure(
    node: int,
    results: Sequence[Mapping[str, Any] | None],
    cancel_requested: bool,
    time_limit: int | None,
    processes: int,
) -> Outcome | None:
    result = results[node]
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
        return _describe_stop(node, cancel_requested)
    records = _records(results)
    if reason == "hang":
        return Outcome(Status.FAILED, hang_error(records, result.get("silent_seconds", 0)))
    failure = result.get("first_failure")
    if failure:
        return Outcome(Status.FAILED, _rank_error(node, failure, records, processes))
    return None


def _records(results: Sequence[Mapping[str, Any] | None]) -> list[Mapping[str, Any]]:
    """The processes of all nodes, each with the number of its node."""
    return [
        {"node": number, **record}
        for number, result in enumerate(results)
        if result
        for record in result.get("processes", [])
    ]


def _rank_error(
    node: int, failure: Mapping[str, Any], records: Sequence[Mapping[str, Any]], processes: int
) -> RunError:
    """The error of the rank that failed first in the whole run, with a sentence about the others."""
    first = cause.first_failure(records)
    if first is None and failure.get("launcher"):
        return _launcher_error(node, failure, records)
    if first is None:
        return script_error(node, failure, processes)
    own = failure if failure.get("rank") == first["rank"] and not failure.get("launcher") else {}
    error = script_error(first["node"], {**first, **own}, processes)
    early = [each for each in records if is_early(each) and each["ended_at"] < cause.failure_time(first)]
    also = [each for each in records if each is not first and cause.has_failed(each) and not each.get("told")]
    words = [f"Before that, {early_ends(early)}."] if early else []
    later = [f"rank {each['rank']} {_how(each)[0]}" for each in also[:_ALSO_NAMED]]
    words += [f"After that, {', '.join(later)}."] if later else []
    return replace(error, message="\n".join([error.message, *words]))


def _launcher_error(node: int, failure: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> RunError:
    """The error if no rank failed by itself: mpirun could not start the ranks, or reported how one ended."""
    how, kind = _how(failure)
    early = [each for each in records if is_early(each)]
    others = [each for each in records if not is_early(each)]
    if early and others:
        message = (
            f"{early_ends(early)} while {name_ranks(others)} went on; {failure['launcher']} {how}, and they with it\n"
            "A rank that has called MPI_Init must not end before MPI_Finalize."
        )
    else:
        message = f"{failure['launcher']} {how}"
    tail = str(failure.get("tail") or "")
    if tail.strip():
        message += f"\nWhat it said:\n{tail.strip()}"
    details = {"node": node, "exit_code": failure.get("exit_code"), "tail": tail}
    return RunError("LauncherFailed" if kind == "ScriptFailed" else kind, message, details)


def _explain(error: RunError | None, disk_full: bool, surroundings: Surroundings | None) -> RunError | None:
    """Adds what else is known: a full disk, and a hint."""
    if error is None:
        return None
    message = error.message
    if disk_full:
        message += "\nThe disk of the workspace was full (no space left on device)."
    hint = hint_for(exceptions_in(str(error.details.get("tail", ""))), surroundings) if surroundings else ""
    if not hint:
        return replace(error, message=message)
    return replace(error, message=f"{message}\n{hint}", details={**error.details, "hint": hint})


def _agent_lost(node: int, cancel_requested: bool) -> Outcome:
    if cancel_requested:
        return Outcome(Status.CANCELED)
    message = (
        f"the agent of node {node} was killed (SIGKILL, or the machine went down); its processes were ended with it\n"
        "Submit the run again."
    )
    return Outcome(Status.FAILED, RunError("NodeAgentLost", message, {"node": node}))


def _describe_stop(node: int, cancel_requested: bool) -> Outcome:
    if cancel_requested:
        return Outcome(Status.CANCELED)
    message = f"the agent of node {node} was stopped (SIGTERM) by another program"
    return Outcome(Status.FAILED, RunError("NodeStopped", message, {"node": node}))


def script_error(node: int, failure: Mapping[str, Any], processes: int = 1) -> RunError:
    """The error of a script that failed: its exception, the rank, how it ended, and its last lines."""
    rank, code, number = failure.get("rank", 0), failure.get("exit_code"), failure.get("signal")
    # Under MPI, one agent reports ranks of other nodes.
    node = failure.get("node", node)
    how, kind = _how(failure)
    tail = str(failure.get("tail") or "")
    who = f"rank {rank} on node {node}"
    message = f"{who} {how}{describe_memory(failure) if kind == 'OutOfMemory' else ''}"
    if kind == "ScriptFailed":
        message = _headline(who, how, tail, code, processes)
    if tail.strip():
        message += f"\nThe last lines it wrote:\n{tail.rstrip()}"
    if failure.get("memory_ran_out") and kind != "OutOfMemory":
        message += "\nMeanwhile the kernel killed another process because the memory was used up (out of memory)."
    if kind != "OutOfMemory" and lacks_memory(tail):
        message += f"\n{who} lacked memory{describe_memory(failure)}."
    details = {
        "rank": rank,
        "node": node,
        "exit_code": code,
        "signal": signal_name(number) if number is not None else None,
        "tail": tail,
        **{name: failure[name] for name in ("peak_memory", "memory_limit") if failure.get(name)},
    }
    return RunError(kind, message, details)


def _headline(who: str, how: str, tail: str, code: int | None, processes: int) -> str:
    """The first line of the error, with the exception in front, because lists of runs show only this line."""
    said = exception_in(tail) or message_in(tail, code)
    if said:
        return f"{who}: {said}\n{who} {how}" if processes > 1 else f"{said}\n{who} {how}"
    last = last_line(tail) if code in _EXPLAINED else ""
    return f"{who} {how}: {last}" if last else f"{who} {how}"


def _how(failure: Mapping[str, Any]) -> tuple[str, str]:
    """How a process ended, as text and as an error code."""
    number = failure.get("signal")
    if failure.get("told") and failure.get("raised"):
        return "failed with an exception", "ScriptFailed"
    if failure.get("out_of_memory"):
        return "was killed by the kernel because the memory was used up (out of memory)", "OutOfMemory"
    if number == signal.SIGKILL:
        return "was killed by SIGKILL, which Trainmaster did not send", "ScriptKilled"
    if number is not None:
        return f"was killed by {signal_name(number)}", "ScriptKilled"
    return f"ended with exit code {failure.get('exit_code')}", "ScriptFailed"


def _warnings(node: int, result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return []
    found = []
    if result.get("reason") == "exited" and result.get("killed"):
        noun, verb = ("process", "was") if result["killed"] == 1 else ("processes", "were")
        found.append(f"node {node}: {result['killed']} {noun} that the script left behind {verb} ended")
    if result.get("survivors"):
        found.append(f"node {node}: these processes could not be ended: {result['survivors']}")
    return found
