"""An HTTP server that does what a test tells it, connection by connection, also to cut connections at any point."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO


@dataclass
class Received:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


Answer = bytes | Callable[[Received, socket.socket], bool]
"""What is sent; or a function that sends it, and says whether the connection stays open."""


def answer(status: int = 200, body: bytes = b"{}", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def cut(received: Received, connection: socket.socket) -> bool:
    """Closes the connection without an answer."""
    return False


@dataclass
class ScriptedServer:
    """Gives one answer after the other; the last one again and again."""

    answers: list[Answer]
    context: ssl.SSLContext | None = None
    reads_body: bool = True
    requests: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._guard = threading.Lock()
        self._count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._count += 1
                threading.Thread(target=self._serve, args=(connection, self._count), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError), connection:
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            with connection, connection.makefile("rb") as file:
                while (received := self._read(file, number)) is not None:
                    with self._guard:
                        self.requests.append(received)
                        reply = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                    if isinstance(reply, bytes):
                        connection.sendall(reply)
                        if not self.reads_body:
                            return
                    elif not reply(received, connection):
                        # The file keeps the socket open.
                        connection.shutdown(socket.SHUT_RDWR)
                        return

    def _read(self, file: IO[bytes], number: int) -> Received | None:
        first = file.readline().decode().split()
        if not first:
            return None
        headers: dict[str, str] = {}
        while line := file.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", "0"))) if self.reads_body else b""
        return Received(first[0], first[1], headers, body, number)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def scripted(
    *answers: Answer, context: ssl.SSLContext | None = None, reads_body: bool = True
) -> Iterator[ScriptedServer]:
    server = ScriptedServer(list(answers), context, reads_body)
    try:
        yield server
    finally:
        server.close()
