"""The requests to services and their answers."""

from __future__ import annotations

import http.client
import json
from base64 import b64decode, b64encode
from typing import Any

from trainmaster.job.errors import WebserviceException

UNAUTHORIZED = 401


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


def post_through(connection: Any, name: str, body: bytes, key: str) -> tuple[int, bytes]:
    """Sends a request to a service through its dispatcher; returns the status and body of the answer."""
    answer = connection.call("services.score", name=name, body=b64encode(body).decode(), key=key)
    return int(answer["status"]), b64decode(answer["body"])


def body_of(data: Any) -> bytes:
    """The body of a request with `data`: as it is if it is text or bytes, otherwise JSON."""
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
