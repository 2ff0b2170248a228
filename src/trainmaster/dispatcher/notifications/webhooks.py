"""Delivery by a webhook: one POST with JSON, signed."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socket import SHUT_RDWR, socket
from urllib.parse import SplitResult, urlsplit

from trainmaster.dispatcher.notifications.addresses import DeliveryError, Reach, connect
from trainmaster.job.errors import UserErrorException

SIGNATURE = "X-Trainmaster-Signature"
DELIVERY = "X-Trainmaster-Delivery"
_CONNECT_SECONDS = 10.0
_SECONDS = 30.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Post:
    """One attempt to deliver a notification."""

    url: str
    body: bytes
    id: str
    sent_at: int
    key: str = ""
    """Signs the body; empty for none."""


def check_url(url: str) -> SplitResult:
    """The parts of a webhook's URL. Refuses one that cannot be used."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_text = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not parts.hostname or not is_text or len(url) > 2000 or port == 0:
        raise UserErrorException("the address of a webhook must be a URL that begins with https:// or http://")
    if parts.username is not None or parts.password is not None:
        raise UserErrorException(
            "the address of a webhook must not contain a password", hint="Sign the notifications instead: --sign."
        )
    return parts


def sign(key: str, sent_at: int, body: bytes) -> str:
    """The value of the header with the signature: the time, and HMAC-SHA256 over the time, a dot and the body.

    >>> sign("secret", 1700000000, b"{}")[:36]
    't=1700000000,v1=b8569b78799ff9e3cbff'
    """
    digest = hmac.new(key.encode(), str(sent_at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={sent_at},v1={digest}"


def send(post: Post, reach: Reach) -> None:
    """Sends the request. An error if the answer is not one of success; redirects are not followed."""
    parts = check_url(post.url)
    host, port = str(parts.hostname), parts.port or _PORTS[parts.scheme]
    headers = {"Content-Type": "application/json", "User-Agent": "trainmaster", DELIVERY: post.id}
    if post.key:
        headers[SIGNATURE] = sign(post.key, post.sent_at, post.body)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    raw = connect(host, port, reach, _CONNECT_SECONDS)
    try:
        with _limit_time(raw):
            connection = http.client.HTTPConnection(host, port)
            connection.sock = _encrypt(raw, host) if parts.scheme == "https" else raw
            connection.request("POST", path, post.body, headers)
            status = connection.getresponse().status
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DeliveryError(f"{host} did not answer: {error or type(error).__name__}") from None
    finally:
        raw.close()
    if not 200 <= status < 300:
        raise DeliveryError(f"{host} answered with status {status}")


def _encrypt(raw: socket, host: str) -> socket:
    return ssl.create_default_context().wrap_socket(raw, server_hostname=host)


@contextmanager
def _limit_time(raw: socket) -> Iterator[None]:
    """Ends the connection after a while, however slowly the other side sends its answer."""

    def end() -> None:
        with suppress(OSError):
            raw.shutdown(SHUT_RDWR)

    timer = threading.Timer(_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
