"""Telling the dispatcher, and bringing one to life when there is none to tell."""

import _socket  # `socket` itself brings in `enum` and `selectors`
import errno
import os

from trainmaster.job.agent import jsonfile, peer

_SECONDS = 1
_NOBODY = (errno.ECONNREFUSED, errno.ENOENT, errno.ENOTDIR, errno.ENOTSOCK)


def tell(path, run_id, node, event):
    """Sends one line to the dispatcher. False only if it is certain that nobody listens."""
    line = jsonfile.dumps({"id": 0, "op": "agent.notify", "args": {"run_id": run_id, "node": node, "event": event}})
    try:
        connection = _connect(path)
    except OSError as error:
        # One that is too busy to answer is there nevertheless, and reads result.json sooner or later.
        return error.errno not in _NOBODY
    try:
        if not peer.is_trusted(connection):
            return False
        connection.sendall(line.encode("ascii") + b"\n")
    except OSError as error:
        # It ended between our connecting and our sending.
        return error.errno not in (errno.EPIPE, errno.ECONNRESET)
    finally:
        connection.close()
    return True


def is_served(lock, path):
    """Whether a dispatcher lives, by its lock and its socket: the cheap way, for those who have nothing to say.

    One that ends takes its socket away first, and is no longer one to count on.
    """
    import fcntl

    try:
        os.stat(path.encode("utf-8", "surrogateescape"))
        handle = os.open(lock.encode("utf-8", "surrogateescape"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that two who look at the same time do not take each other for a dispatcher.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(handle)


def listener(path):
    """The process id of the dispatcher that listens there, or None."""
    try:
        connection = _connect(path)
    except OSError:
        return None
    try:
        return peer.credentials(connection)[0] if peer.is_trusted(connection) else None
    finally:
        connection.close()


def _connect(path):
    import _struct

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        # A time-out of the kernel's: with a full backlog Python's own would fail at once instead of waiting.
        limit = _struct.pack("ll", _SECONDS, 0)
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, limit)
        connection.connect(path.encode("utf-8", "surrogateescape"))
    except BaseException:
        connection.close()
        raise
    return connection
