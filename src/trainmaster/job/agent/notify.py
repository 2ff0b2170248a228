"""Sends events to the dispatcher, and finds out whether one is running."""

import _socket  # `socket` itself imports `enum` and `selectors`
import errno
import os

from trainmaster.job.agent import jsonfile, peer

_SECONDS = 1
_NO_LISTENER = (errno.ECONNREFUSED, errno.ENOENT, errno.ENOTDIR, errno.ENOTSOCK)


def send(path: str, run_id: str, node: int, event: str) -> bool:
    """Sends one line to the dispatcher. False only if certainly no dispatcher listens."""
    line = jsonfile.dumps({"id": 0, "op": "agent.notify", "args": {"run_id": run_id, "node": node, "event": event}})
    try:
        connection = _connect(path)
    except OSError as error:
        # A dispatcher that is too busy to answer is running, and will read result.json.
        return error.errno not in _NO_LISTENER
    try:
        if not peer.is_trusted(connection):
            return False
        connection.sendall(line.encode("ascii") + b"\n")
    except OSError as error:
        # The dispatcher ended after the connection was made.
        return error.errno not in (errno.EPIPE, errno.ECONNRESET)
    finally:
        connection.close()
    return True


def is_running(lock: str, path: str) -> bool:
    """Whether a dispatcher is running, by its lock and its socket: cheaper than a connection.

    A dispatcher that ends removes its socket first, and no longer counts as running.
    """
    import fcntl

    try:
        os.stat(path.encode("utf-8", "surrogateescape"))
        handle = os.open(lock.encode("utf-8", "surrogateescape"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that two agents that check at the same time do not see each other as a dispatcher.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(handle)


def find_listener(path: str) -> "int | None":
    """The process id of the dispatcher that listens at `path`, or None."""
    try:
        connection = _connect(path)
    except OSError:
        return None
    try:
        return peer.credentials(connection).pid if peer.is_trusted(connection) else None
    finally:
        connection.close()


def _connect(path: str) -> _socket.socket:
    import _struct

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        # The kernel's own timeout: with a full backlog, Python's timeout would fail at once instead of waiting.
        limit = _struct.pack("ll", _SECONDS, 0)
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, limit)
        connection.connect(path.encode("utf-8", "surrogateescape"))
    except BaseException:
        connection.close()
        raise
    return connection
