"""Requests to the services of this machine."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from trainmaster.job.errors import WebserviceException


def post(address: str, body: bytes, key: str = "", seconds: float | None = None) -> tuple[int, bytes]:
    """Sends `body` and returns the status and body of the answer. It uses no proxy: the service is on this machine."""
    place = urlsplit(address)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=seconds)
    try:
        connection.request("POST", place.path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"the service at {address} does not answer",
            cause=str(error) or type(error).__name__,
            hint="See service.state and service.get_logs().",
        ) from None
    finally:
        connection.close()


def host_name(host: str) -> str:
    """The host name for URLs of an address.

    >>> host_name("127.0.0.1"), host_name("10.0.0.7")
    ('localhost', '10.0.0.7')
    """
    if host in ("127.0.0.1", "localhost"):
        return "localhost"
    if host in ("0.0.0.0", "::"):
        import socket

        return socket.getfqdn()
    return host
