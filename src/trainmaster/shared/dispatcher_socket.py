"""The dispatcher's socket: JSON lines, the check of the peer, and the command that starts a dispatcher."""

from __future__ import annotations

import _socket
import os
import socket
import sys
from pathlib import Path
from typing import Any

from trainmaster.job.agent.peer import is_trusted
from trainmaster.job.errors import ServiceException, UserErrorException
from trainmaster.job.helper import messages
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.private import why_not_private

LONGEST_REQUEST = 64 * 1024 * 1024
"""In bytes."""


class _Connection(socket.socket):
    """A socket that closes silently with its Workspace, which programs do not close.

    When the garbage collector frees both in one cycle, the socket may be freed first and would warn.
    """

    def __del__(self) -> None:
        # The reader of this socket is freed as well.
        _socket.socket.close(self)


class Line:
    """One connection that speaks JSON lines."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._reader = connection.makefile("rb")

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: dict[str, Any]) -> None:
        text = messages.encode(message) + b"\n"
        if len(text) > LONGEST_REQUEST:
            raise UserErrorException(
                f"{message['op']}: the request has {len(text) >> 20} MB",
                cause=f"The dispatcher accepts {LONGEST_REQUEST >> 20} MB at most.",
            )
        self._socket.sendall(text)

    def receive(self) -> dict[str, Any]:
        text = self._reader.readline()
        if not text.endswith(b"\n"):
            raise EOFError("the dispatcher closed the connection")
        return messages.decode(text)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    __del__ = close


def try_line(folder: WorkspaceFolder) -> Line | None:
    """A connection to the dispatcher, or None if none listens."""
    place = folder.socket
    if not _is_private(place, folder):
        return None
    connection = _Connection(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(place))
    except OSError:
        connection.close()
        return None
    if not is_trusted(connection, str(folder.path)):
        # Nothing was sent to it yet.
        connection.close()
        raise ServiceException(
            f"another user listens in the place of the dispatcher of {folder.path}",
            cause=str(place),
            hint=f"Find out who created it, and remove {place}.",
        )
    return Line(connection)


def _is_private(place: Path, folder: WorkspaceFolder) -> bool:
    """Whether no other user can have created the socket. If one can, the next dispatcher uses another folder."""
    if place.parent == folder.path:
        return True
    try:
        return not why_not_private(place.parent, (os.geteuid(), os.stat(folder.path).st_uid))
    except OSError:
        return False


def dispatcher_command(folder: WorkspaceFolder) -> list[str]:
    """The command line of this workspace's dispatcher."""
    return [sys.executable, "-P", "-m", "trainmaster.dispatcher", str(folder.path)]
