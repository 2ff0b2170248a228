"""Which rank failed first. The others may have ended before it, though they failed only because of it.

A rank that raises writes its traceback and then takes its time to close down; by that its peers lose their
connections, and may be quicker to end. So it is the moment of the traceback that counts. And of a process that the
kernel kills nobody hears the moment: its peers may have noticed before its parent did.
"""

# SIGILL, SIGBUS, SIGFPE, SIGKILL, SIGSEGV: no peer's failure leads to these.
_HARD = (4, 7, 8, 9, 11)
_HEAD_START_SECONDS = 0.5
# How long closing down may take.
_CLOSING_SECONDS = 10.0


def first(records):
    """The record (of those in result.json) of the rank that failed first; None if none failed by itself."""
    own = [record for record in records if failed(record) and not record.get("told")]
    if not own:
        return None
    cause = min(own, key=failed_at)
    # Told to end while it was closing down, because a peer that it had let down ended first.
    closing = [record for record in records if failed(record) and record.get("told") and record.get("raised")]
    closing = [record for record in closing if 0 <= failed_at(cause) - failed_at(record) < _CLOSING_SECONDS]
    return min([cause, *closing], key=failed_at)


def failed_at(record):
    """The moment of the failure, as well as it is known."""
    if record.get("signal") in _HARD and not record.get("told"):
        return record["ended_at"] - _HEAD_START_SECONDS
    if record.get("raised") and record["ended_at"] - record["wrote_at"] < _CLOSING_SECONDS:
        return record["wrote_at"]
    return record["ended_at"]


def failed(record):
    """Whether the rank has ended, and not well."""
    return bool(record.get("ended_at")) and record.get("exit_code") != 0
