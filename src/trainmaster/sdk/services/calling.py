"""One HTTP request to a service of this machine."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from trainmaster.job.errors import WebserviceException

UNAUTHORIZED = 401


def post(address: str, data: Any, key: str = "", seconds: float | None = None) -> tuple[int, bytes]:
    """Sends `data` and returns the status and body of the answer. It uses no proxy: the service is on this machine."""
    body = _body(data)
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


def result_of(name: str, status: int, body: bytes) -> Any:
    """The return value of the script's `run`. An error of the service is raised with its own text."""
    text = body.decode("utf-8", "replace")
    if status != http.client.OK:
        raise WebserviceException(
            f"service '{name}' answered {status}",
            cause=text[:4000],
            hint=f"See service.get_logs(), or 'trainmaster services logs {name}'.",
        )
    try:
        return json.loads(text)
    except ValueError:
        return body if "\ufffd" in text else text


def _body(data: Any) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if isinstance(data, str):
        return data.encode()
    try:
        return json.dumps(data).encode()
    except (TypeError, ValueError) as error:
        raise WebserviceException(
            f"a {type(data).__name__} cannot be sent to a service",
            cause=str(error),
            hint="Give a JSON string, or bytes.",
        ) from None
