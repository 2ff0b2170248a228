"""Answers health checks while the event loop is blocked, so that a slow `run` does not look like a dead replica.

A fast `run` shares a thread with the event loop (`calling.py`), and one call that is suddenly slow blocks the loop.
Then a separate thread accepts connections. It answers health checks, and passes all other connections unread to the
loop.
"""

from __future__ import annotations

import socket
import threading
from select import select
from time import monotonic, perf_counter, sleep
from typing import Callable, Optional

from . import numbers as places
from .application import CLOSE, Application

_LOOK_SECONDS = 0.25
# The loop writes a heartbeat ten times a second.
_ABSENT_SECONDS = 0.5
# How long a connection is left to the other replicas, and how long to wait for its first bytes.
_PATIENCE_SECONDS = 0.02
_WORDS_SECONDS = 0.2
_HEAD_BYTES = 8192


class HealthFallback:
    """Watches the event loop after `start`. `take_connection` is called in the loop to give it a connection."""

    def __init__(
        self, application: Application, listening: socket.socket, take_connection: Callable[[socket.socket], None]
    ) -> None:
        self._application = application
        self._mine = application.numbers.mine
        self._listening = listening
        self._take_connection = take_connection

    def start(self) -> None:
        """Start watching, in a daemon thread."""
        threading.Thread(target=self._watch, name="health fallback", daemon=True).start()

    def _watch(self) -> None:
        while True:
            sleep(_LOOK_SECONDS)
            while self._is_needed():
                self._go_to_the_door()

    def _is_needed(self) -> bool:
        """Whether the replica accepts connections but its event loop is blocked."""
        return bool(self._mine[places.READY]) and monotonic() - self._mine[places.HEARTBEAT] > _ABSENT_SECONDS

    def _go_to_the_door(self) -> None:
        if not select([self._listening], [], [], _LOOK_SECONDS)[0]:
            return
        sleep(_PATIENCE_SECONDS)
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return  # another replica accepted it, or the client has disconnected
        if not self._answer_health(connection):
            self._application.call_soon(self._take_connection, connection)

    def _answer_health(self, connection: socket.socket) -> bool:
        """Answer the connection if it is a health check; return whether it was one."""
        began = perf_counter()
        connection.settimeout(_WORDS_SECONDS)
        try:
            path = _parse_path(connection.recv(_HEAD_BYTES, socket.MSG_PEEK))
        except OSError:
            return False
        answer = self._application.open_page(path) if path else None
        if answer is None:
            return False
        number = self._application.new_number()
        fields = (*self._application.headers(answer, number, None), CLOSE)
        head = b"".join(b"%b: %b\r\n" % field for field in fields)
        try:
            connection.recv(_HEAD_BYTES)
            connection.sendall(b"HTTP/1.1 %d OK\r\n%b\r\n%b" % (answer.status, head, answer.body))
        except OSError:
            pass
        connection.close()
        scope = {"method": "GET", "path": path}
        self._application.call_soon(self._application.note, scope, number, answer.status, began, 0, len(answer.body))
        return True


def _parse_path(head: bytes) -> Optional[str]:
    """The path of a complete GET request; None for anything else.

    >>> _parse_path(b"GET /healthz?full=1 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    '/healthz'
    """
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or words[0] != b"GET" or not words[2].startswith(b"HTTP/1.") or not head.endswith(b"\r\n\r\n"):
        return None
    return words[1].partition(b"?")[0].decode("latin-1")
