"""Answers clients with an error while no replica is running, instead of letting them wait."""

from __future__ import annotations

import contextlib
import json
import socket

_AT_ONCE = 200
_SENTENCE = "The service has no running replica. See its state and its log for the reason."
_BODY = json.dumps({"message": _SENTENCE, "request_id": "-"}).encode("ascii")
_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"retry-after: 5\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


def refuse_waiting(listening: socket.socket) -> None:
    """Answer all waiting connections with an error."""
    for _ in range(_AT_ONCE):
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # no connection is waiting
        with connection, contextlib.suppress(OSError):
            connection.setblocking(False)
            connection.send(_ANSWER)
            connection.shutdown(socket.SHUT_WR)
            # Read the request: unread data would make the kernel reset the connection and drop the answer.
            while connection.recv(65536):
                pass
