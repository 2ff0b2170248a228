"""The answer of a dispatcher as the body of a response, parsed only where that is necessary."""

from __future__ import annotations

import math
from typing import Any

import orjson

from trainmaster.job.errors import from_wire
from trainmaster.job.helper import messages
from trainmaster.server.api.table import Operation
from trainmaster.server.dispatchers import decode
from trainmaster.server.errors import HttpError, status_of
from trainmaster.server.operations import conceal, has_credentials

_HEAD = b'{"id": 1, "result": '
_LASTING_HEAD = b'{"id": 1, "lasts": true, "result": '


def write_answer(target: Operation, line: bytes) -> bytes:
    """The body for the answer of an operation. Raises HttpError for an error."""
    result = cut_result(line)
    if result is None:
        error = from_wire(decode(line)["error"])
        raise HttpError(status_of(error), error)
    if has_credentials(target.name):
        result = write_plain(conceal(target.name, messages.decode(line)["result"]))
    elif not target.is_exact and (b"NaN" in result or b"Infinity" in result):
        result = write_plain(messages.decode(line)["result"])
    return b'{"%s":%s}' % (target.answer_key.encode(), result) if target.answer_key else result


def cut_result(line: bytes) -> bytes | None:
    """The result in the answer of a dispatcher as JSON text, without parsing it; None if the answer is an error.

    >>> cut_result(b'{"id": 1, "result": [1, 2]}' + bytes([10]))
    b'[1, 2]'
    """
    if lasts(line):
        return line[len(_LASTING_HEAD) : -2]
    return line[len(_HEAD) : -2] if line.startswith(_HEAD) else None


def lasts(line: bytes) -> bool:
    """Whether an answer stays right until something changes that it depends on (`dispatcher/operation.py`)."""
    return line.startswith(_LASTING_HEAD)


def write_plain(value: Any) -> bytes:
    """Plain data as JSON. Numbers that are not finite become texts, because JSON has no words for them.

    >>> write_plain({"loss": float("nan")})
    b'{"loss":"NaN"}'
    """
    return orjson.dumps(_replace_numbers(value))


def _replace_numbers(value: Any) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _replace_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_numbers(item) for item in value]
    return value
