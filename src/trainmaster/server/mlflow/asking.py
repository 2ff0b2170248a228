"""Reads requests of MLflow's clients, and asks endpoints on behalf of them."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.shared import json_text

_JSON = "application/json"


async def ask_endpoint(call: Call, method: str, path: str, /, **arguments: Any) -> Any:
    """What an endpoint below `2.0/mlflow/` answers. Raises MlflowError if that is an error."""
    given = {name: value for name, value in arguments.items() if value is not None}
    whole = f"2.0/mlflow/{path}"
    found = await call.ask("mlflow.call", method=method, path=whole, arguments=given, user=call.caller.name)
    body = orjson.loads(found["body"])
    if found["status"] != 200:
        raise MlflowError(body["error_code"], body["message"])
    return body


def check_content_type(call: Call) -> None:
    """Refuse a body that does not say that it is JSON. Pages of other sites cannot send one that does unasked."""
    if call.route.method not in ("POST", "PUT"):
        return
    given = call.request.headers.get("content-type")
    if given is None:
        raise MlflowError(WRONG, "Bad Request. Content-Type header is missing.")
    if given.partition(";")[0] != _JSON:
        raise MlflowError(WRONG, f"Bad Request. Content-Type must be one of {[_JSON]}.")


async def read_body(call: Call) -> dict[str, Any]:
    """The JSON object in the body of a request; empty without one."""
    return (await read_body_and_text(call))[0]


async def read_body_and_text(call: Call) -> tuple[dict[str, Any], bytes | None]:
    """The same, and the body itself if it may stand in a line of JSON: nothing can follow the object in it."""
    text = await call.request.body()
    if not text or call.route.method == "GET":
        return {}, None
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(text)
        if isinstance(found, dict):
            return found, None if b"\n" in text else text
    return _parse_leniently(text), None


def _parse_leniently(text: bytes) -> dict[str, Any]:
    try:
        # With NaN and Infinity, which Python's clients send.
        found = json_text.parse(text)
    except ValueError:
        raise refuse(400, "the body is not JSON") from None
    # Some clients send an object within a text.
    if isinstance(found, str):
        try:
            found = json_text.parse(found)
        except ValueError:
            found = None
    if not isinstance(found, dict):
        raise refuse(400, "the body is not a JSON object")
    return found
