"""Shortages of the machine that pass: no process, file handle, memory or disk space is free just now."""

import errno

PASSING = frozenset((errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT))


def is_passing(error):
    """Whether the same call may well succeed in a while."""
    if isinstance(error, RuntimeError):
        # All that Python says where the system refuses a thread.
        return "can't start new thread" in str(error)
    return isinstance(error, OSError) and error.errno in PASSING
