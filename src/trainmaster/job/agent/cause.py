"""Which rank failed first. The others may have ended before it, though they failed only because of it.

A rank that raises writes its traceback and then takes its time to close down; by that its peers lose their
connections, and may be quicker to end. So it is the moment of the traceback that counts. Of a process that the kernel
kills nobody hears the moment: its peers may have noticed before its parent did. And of ranks that fail at about the
same time, those whose last words are of a lost connection are not the cause.
"""

import os

from trainmaster.job.agent.tail import tail

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
# SIGILL, SIGBUS, SIGFPE, SIGKILL, SIGSEGV: no peer's failure leads to these.
_HARD = (4, 7, 8, 9, 11)
_HEAD_START_SECONDS = 0.5
# How long closing down may take.
_CLOSING_SECONDS = 10.0
# So long those who only lost a peer wait for the one who let them down to end by itself.
PATIENCE_SECONDS = 1.0


def first_failure(records):
    """The record (of those in result.json) of the rank that failed first; None if none failed by itself."""
    own = [record for record in records if has_failed(record) and not record.get("told")]
    if not own:
        return None
    earliest = min(map(failure_time, own))
    near = [record for record in own if failure_time(record) - earliest < _CLOSING_SECONDS]
    # Told to end while it was closing down, because a peer that it had let down ended first.
    near += [record for record in records if _was_closing(record, earliest)]
    return min(near, key=lambda record: (bool(record.get("lost_peer")), failure_time(record)))


def _was_closing(record, then):
    known = has_failed(record) and record.get("told") and record.get("raised")
    return known and 0 <= then - failure_time(record) < _CLOSING_SECONDS


def failure_time(record):
    """The moment of the failure, as well as it is known."""
    if record.get("signal") in _HARD and not record.get("told"):
        return record["ended_at"] - _HEAD_START_SECONDS
    if record.get("raised") and record["ended_at"] - record["wrote_at"] < _CLOSING_SECONDS:
        return record["wrote_at"]
    return record["ended_at"]


def only_lost_peers(records):
    """Whether ranks failed, and each says that it lost a peer: then the cause is elsewhere, or still closing down."""
    own = [record for record in records if has_failed(record) and not record.get("told")]
    return bool(own) and all(record.get("lost_peer") for record in own)


def has_failed(record):
    """Whether the rank has ended, and not well."""
    return bool(record.get("ended_at")) and record.get("exit_code") != 0


def last_words(log):
    """What a log says about the end of its rank, for its record."""
    text = tail(log)
    try:
        wrote_at = os.stat(log).st_mtime
    except OSError:
        return {"raised": False, "lost_peer": False, "wrote_at": None}
    return {"raised": _TRACEBACK in text, "lost_peer": tells_of_lost_peer(text), "wrote_at": wrote_at}


def tells_of_lost_peer(text):
    """
    >>> tells_of_lost_peer("Traceback ...\\nRuntimeError: [pair.cc:534] Connection closed by peer [127.0.1.1]:4711")
    True
    """
    last = "\n".join(text.lower().splitlines()[-_LAST_LINES:])
    return any(words in last for words in _LOST_PEER)
