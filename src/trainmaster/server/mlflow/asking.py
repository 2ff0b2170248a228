"""Reads requests of MLflow's clients, and asks endpoints on behalf of them."""

from __future__ import annotations

import json
from typing import Any

import orjson

from trainmaster.dispatcher.mlflow.errors import MlflowError
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse


async def ask_endpoint(call: Call, method: str, path: str, /, **arguments: Any) -> Any:
    """What an endpoint below `2.0/mlflow/` answers. Raises MlflowError if that is an error."""
    given = {name: value for name, value in arguments.items() if value is not None}
    whole = f"2.0/mlflow/{path}"
    found = await call.ask("mlflow.call", method=method, path=whole, arguments=given, user=call.caller.name)
    body = orjson.loads(found["body"])
    if found["status"] != 200:
        raise MlflowError(body["error_code"], body["message"])
    return body


async def read_body(call: Call) -> dict[str, Any]:
    """The JSON object in the body of a request; empty without one."""
    text = await call.request.body()
    if not text or call.route.method == "GET":
        return {}
    try:
        # Python's own reader accepts NaN and Infinity, which Python's clients send.
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise refuse(400, "the body is not JSON") from None
    # Some clients send an object within a text.
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, dict):
        raise refuse(400, "the body is not a JSON object")
    return found
