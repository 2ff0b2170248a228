"""Temporary shortages of the machine: no free process, file handle, memory or disk space at the moment."""

import errno

TEMPORARY = frozenset((errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT))


def is_temporary(error: "BaseException | None") -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, RuntimeError):
        # Python raises nothing more specific when the system refuses a thread.
        return "can't start new thread" in str(error)
    return isinstance(error, OSError) and error.errno in TEMPORARY
