"""Real receivers of notifications: a web server and a mail server, on ports of their own."""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class WebReceiver:
    """A web server that keeps what it is sent."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """The states of the next answers; 200 after them."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Requests are answered when it is set."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"


@contextmanager
def receive_posts(port: int = 0) -> Iterator[WebReceiver]:
    """Runs a web server."""
    receiver = WebReceiver()
    receiver.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, dict(self.headers), body))
            receiver.hold.wait(60)
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    class WebServer(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    server = WebServer(("127.0.0.1", port), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.shutdown()
        server.server_close()


@dataclass
class MailReceiver:
    """A mail server that keeps what it is sent."""

    port: int = 0
    letters: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    sign_ins: list[str] = field(default_factory=list)


@contextmanager
def receive_mail(certificate: tuple[Path, Path] | None = None) -> Iterator[MailReceiver]:
    """Runs a mail server (RFC 5321); with a key and a certificate it requires STARTTLS and a sign-in."""
    receiver = MailReceiver()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 ready")
            is_encrypted = False
            while line := self.rfile.readline().decode().strip():
                word = line.upper().split(":")[0].split(" ")[0]
                if word == "EHLO":
                    offers = [] if certificate is None else ["AUTH PLAIN"] if is_encrypted else ["STARTTLS"]
                    for number, offer in enumerate(["here", *offers]):
                        self._say(f"250{' ' if number == len(offers) else '-'}{offer}")
                elif word == "STARTTLS" and certificate is not None:
                    self._say("220 go on")
                    self._encrypt(certificate)
                    is_encrypted = True
                elif word == "AUTH":
                    receiver.sign_ins.append(line.split()[-1])
                    self._say("235 welcome")
                elif word == "DATA":
                    self._say("354 go on")
                    receiver.letters.append(self._read_letter())
                    self._say("250 kept")
                elif word == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    if word == "RCPT":
                        receiver.recipients.append(line[len("RCPT TO:") :].split(" ")[0].strip("<>"))
                    self._say("250 fine")

        def _read_letter(self) -> str:
            lines = iter(lambda: self.rfile.readline().decode(), ".\r\n")
            return "".join(lines).replace("\r\n", "\n")

        def _encrypt(self, files: tuple[Path, Path]) -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(files[1], files[0])
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile = self.connection.makefile("rb")

        def finish(self) -> None:
            super().finish()
            self.rfile.close()
            self.connection.close()

        def _say(self, text: str) -> None:
            self.connection.sendall(f"{text}\r\n".encode())

    class MailServer(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    server = MailServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
