"""What is said to clients while no replica is there and none will be soon: better than to let them wait in silence."""

from __future__ import annotations

import contextlib
import json
import socket

_AT_ONCE = 200
_SENTENCE = "No replica of the service is there to answer. The state and the log of the service say why."
_BODY = json.dumps({"message": _SENTENCE, "request_id": "-"}).encode("ascii")
_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"retry-after: 5\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


def refuse_waiting(listening: socket.socket) -> None:
    """Answers everyone who waits at the door now."""
    for _ in range(_AT_ONCE):
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # nobody is there any more
        with connection, contextlib.suppress(OSError):
            connection.setblocking(False)
            connection.send(_ANSWER)
            connection.shutdown(socket.SHUT_WR)
            # What was sent and never read would make the kernel take the answer back.
            while connection.recv(65536):
                pass
