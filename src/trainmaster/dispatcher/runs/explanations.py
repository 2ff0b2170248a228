"""Why a run is as it is: what it waits for, or why it failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.dispatcher.runs.hangs import stack_lines
from trainmaster.dispatcher.runs.last_words import exceptions_in
from trainmaster.shared.attempts import FailedAttempt
from trainmaster.shared.records import RunError, RunRecord, Status

_TYPE = re.compile(r"(?P<type>[^\W\d][\w.]*)(?:: (?P<message>.*))?", re.DOTALL)
_LONGEST_STACK = 20_000
_MOST_STACKS = 64

_WORDS: Mapping[Status, str] = {
    Status.NOT_STARTED: "It was submitted and will be prepared next.",
    Status.PREPARING: "Its environment and data are being prepared.",
    Status.QUEUED: "It waits for nodes.",
    Status.STARTING: "Its processes are being started.",
    Status.RUNNING: "It is running.",
    Status.FINALIZING: "Its script has ended. Files and metrics are being stored.",
    Status.CANCEL_REQUESTED: "It is being cancelled.",
    Status.COMPLETED: "It completed.",
    Status.FAILED: "It failed.",
    Status.CANCELED: "It was cancelled.",
}


@dataclass(frozen=True)
class RankStack:
    """Where a rank was when its run was ended for being silent."""

    rank: int
    lines: tuple[str, ...]
    """The innermost calls, and those in the script."""
    text: str
    """All that was written, perhaps shortened."""


@dataclass(frozen=True)
class RunExplanation:
    """Why a run is as it is."""

    run_id: str
    status: Status
    reason: str
    """One sentence or line: what it waits for, or why it failed."""
    code: str = ""
    """The kind of error; empty without one."""
    message: str = ""
    """The whole error."""
    hint: str = ""
    """What to do about it, if that is known."""
    exception_type: str = ""
    exception_message: str = ""
    causes: tuple[str, ...] = ()
    """The exceptions that led to it, each in one line."""
    rank: int | None = None
    """The rank that failed first."""
    node: int | None = None
    exit_code: int | None = None
    signal: str = ""
    last_lines: tuple[str, ...] = ()
    """The last lines that this rank wrote."""
    hang_seconds: float | None = None
    """How long all ranks were silent before the run was ended for it."""
    stacks: tuple[RankStack, ...] = ()
    attempts: tuple[FailedAttempt, ...] = ()
    """The attempts before this one, oldest first."""
    warnings: tuple[str, ...] = ()


def explain_run(run: RunRecord, attempts: Sequence[FailedAttempt] = (), ending: str = "") -> RunExplanation:
    """The explanation of a run as clients see it; `ending` is why a sweep ends."""
    error = run.error
    reason = run.waiting_for or ending or _WORDS[run.status]
    if error is None:
        return RunExplanation(run.id, run.status, reason, attempts=tuple(attempts), warnings=run.warnings)
    details = error.details
    tail = str(details.get("tail") or "")
    raised = exceptions_in(tail)
    kind, said = split_exception(raised[0]) if raised else ("", "")
    return RunExplanation(
        run.id,
        run.status,
        error.message.partition("\n")[0] or reason,
        code=error.code,
        message=error.message,
        hint=str(details.get("hint") or ""),
        exception_type=kind,
        exception_message=said,
        causes=tuple(raised[1:]),
        rank=_read_int(details.get("rank")),
        node=_read_int(details.get("node")),
        exit_code=_read_int(details.get("exit_code")),
        signal=str(details.get("signal") or ""),
        last_lines=tuple(tail.rstrip("\n").splitlines()),
        hang_seconds=_read_seconds(details.get("hang_seconds")),
        stacks=tuple(_list_stacks(error)),
        attempts=tuple(attempts),
        warnings=run.warnings,
    )


def split_exception(line: str) -> tuple[str, str]:
    """The type and the message of an exception.

    >>> split_exception("torch.cuda.OutOfMemoryError: out of memory"), split_exception("KeyboardInterrupt")
    (('torch.cuda.OutOfMemoryError', 'out of memory'), ('KeyboardInterrupt', ''))
    """
    found = _TYPE.fullmatch(line)
    return (found["type"], found["message"] or "") if found else ("", line)


def _list_stacks(error: RunError) -> list[RankStack]:
    stacks = error.details.get("stacks")
    if not isinstance(stacks, Mapping):
        return []
    by_rank = sorted((int(rank), str(text)) for rank, text in stacks.items() if str(rank).isdecimal())
    return [RankStack(rank, tuple(stack_lines(text)), text[:_LONGEST_STACK]) for rank, text in by_rank[:_MOST_STACKS]]


def _read_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _read_seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
