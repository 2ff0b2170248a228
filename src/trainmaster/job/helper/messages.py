"""Requests and answers between processes: the same on the dispatcher's socket, in job requests and at the helper.

A message is a JSON object. A request has the name of an operation (`op`) and, except at the helper, its arguments
(`args`). An answer has a `result` or an `error`. The answer repeats the `id` of its request, if it has one. On a
connection each message is one line.
"""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping

    Message = Dict[str, Any]


def request(op: str, args: "Mapping[str, Any]", number: int = 1) -> "Message":
    """A request for the operation `op`."""
    return {"id": number, "op": op, "args": args}


def success(result: "Any", to: "Mapping[str, Any]") -> "Message":
    """The answer to a request that was carried out."""
    return dict(_id_of(to), result=result)


def failure(error: "Any", to: "Mapping[str, Any]") -> "Message":
    """The answer to a request that failed; `error` is a text, or the data of `TrainmasterError.to_wire`."""
    return dict(_id_of(to), error=error)


def result_of(answer: "Mapping[str, Any]", make_error: "Callable[[Any], Exception]") -> "Any":
    """The result in an answer. Raises what `make_error` makes of the error in it."""
    check(answer, make_error)
    return answer["result"]


def check(answer: "Mapping[str, Any]", make_error: "Callable[[Any], Exception]") -> None:
    """Raises what `make_error` makes of the error in an answer, if it has one."""
    if "error" in answer:
        raise make_error(answer["error"])


def encode(message: "Mapping[str, Any]") -> bytes:
    """A message as one line, without its end."""
    return json.dumps(message).encode("ascii")


def decode(data: bytes) -> "Message":
    """The message in these bytes. Raises ValueError."""
    try:
        message = json.loads(data.decode("utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(message, dict):
        raise ValueError("it is not an object")
    return message


def _id_of(message: "Mapping[str, Any]") -> "Message":
    return {"id": message["id"]} if "id" in message else {}
