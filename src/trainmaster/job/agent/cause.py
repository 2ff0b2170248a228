"""Finds the rank that failed first. Others may have ended earlier although they failed only because of it.

A rank that raises an exception writes its traceback and then closes down. Its peers lose their connections in the
meantime and may end sooner, so the time of the traceback counts. The time at which the kernel killed a process is
unknown: its peers may have noticed before its parent did. Among ranks that fail at about the same time, those whose
last lines report a lost connection are not the cause.
"""

import os

from trainmaster.job.agent.tail import tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

    Record = Mapping[str, Any]

_TRACEBACK = "Traceback (most recent call last)"
_LOST_PEER = (
    "connectionerror",
    "connectionreseterror",
    "connectionabortederror",
    "brokenpipeerror",
    "connection reset",
    "connection closed",
    "closed by peer",
    "broken pipe",
    "socket closed",
    "remote process exited",
    "horovodinternalerror",
    "horovod has been shut down",
)
_LAST_LINES = 10
# SIGILL, SIGBUS, SIGFPE, SIGKILL, SIGSEGV: the failure of a peer does not cause these.
_HARD_SIGNALS = (4, 7, 8, 9, 11)
_HEAD_START_SECONDS = 0.5
# How long closing down may take.
_CLOSING_SECONDS = 10.0
# How long ranks that only lost a peer wait for the rank that caused it to end by itself.
PATIENCE_SECONDS = 1.0


def first_failure(records: "Iterable[Record]") -> "Record | None":
    """The record (of those in result.json) of the rank that failed first; None if none failed by itself."""
    records = list(records)
    own = [record for record in records if has_failed(record) and not record.get("told")]
    if not own:
        return None
    earliest = min(map(failure_time, own))
    near = [record for record in own if failure_time(record) - earliest < _CLOSING_SECONDS]
    # Asked to end while it was closing down, because a peer that lost its connection to it ended first.
    near += [record for record in records if _was_closing(record, earliest)]
    return min(near, key=lambda record: (bool(record.get("lost_peer")), failure_time(record)))


def _was_closing(record: "Record", then: float) -> bool:
    if not (has_failed(record) and record.get("told") and record.get("raised")):
        return False
    return 0 <= then - failure_time(record) < _CLOSING_SECONDS


def failure_time(record: "Record") -> float:
    """The time of the failure, as exactly as it is known."""
    ended_at = float(record["ended_at"])
    if record.get("signal") in _HARD_SIGNALS and not record.get("told"):
        return ended_at - _HEAD_START_SECONDS
    if record.get("raised") and ended_at - record["wrote_at"] < _CLOSING_SECONDS:
        return float(record["wrote_at"])
    return ended_at


def only_lost_peers(records: "Iterable[Record]") -> bool:
    """Whether ranks failed and each reports a lost peer: the cause is on another node, or still closing down."""
    own = [record for record in records if has_failed(record) and not record.get("told")]
    return bool(own) and all(record.get("lost_peer") for record in own)


def has_failed(record: "Record") -> bool:
    """Whether the rank has ended with an error."""
    return bool(record.get("ended_at")) and record.get("exit_code") != 0


def last_words(log: "str | bytes | os.PathLike[str]") -> "dict[str, Any]":
    """What a log says about the end of its rank, as fields of the rank's record."""
    text = tail(log)
    try:
        wrote_at = os.stat(log).st_mtime
    except OSError:
        return {"raised": False, "lost_peer": False, "wrote_at": None}
    return {"raised": _reports_exception(text), "lost_peer": reports_lost_peer(text), "wrote_at": wrote_at}


def _reports_exception(text: str) -> bool:
    """Whether there is a whole traceback. A rank that is asked to end while it writes one has not said what it raised.

    >>> _reports_exception("Traceback (most recent call last):\\n  File 'a.py', line 1\\nValueError: no")
    True
    >>> _reports_exception("Traceback (most recent call last):\\n  File 'a.py', line 1")
    False
    """
    _, found, rest = text.rpartition(_TRACEBACK)
    return bool(found) and any(line and not line[0].isspace() for line in rest.splitlines()[1:])


def reports_lost_peer(text: str) -> bool:
    """
    >>> reports_lost_peer("Traceback ...\\nRuntimeError: [pair.cc:534] Connection closed by peer [127.0.1.1]:4711")
    True
    """
    last = "\n".join(text.lower().splitlines()[-_LAST_LINES:])
    return any(words in last for words in _LOST_PEER)
