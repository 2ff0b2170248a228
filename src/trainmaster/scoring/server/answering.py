"""From a request to an answer: the body read as the script wants it, `run` called, its result written as JSON."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple
from urllib.parse import parse_qsl

from .log import Log, request_id
from .raw import AMLRequest, AMLResponse
from .schema_errors import misfits
from .script import Script, own_traceback, summarize

try:
    import orjson
except ImportError:  # the standard library does it too, in twice the time
    orjson = None  # type: ignore[assignment]

Header = Tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
# What the server says itself of an answer.
_KEPT_BACK = frozenset(("content-length", "transfer-encoding", "connection", "x-request-id", "date"))


class Request:
    """One request to /score, read whole."""

    __slots__ = ("body", "headers", "id", "method", "query")

    def __init__(self, number: str, method: str, query: bytes, headers: List[Header], body: bytes) -> None:
        self.id = number
        self.method = method
        self.query = query
        self.headers = headers
        self.body = body


class Answer:
    """What goes back."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: Sequence[Header] = (JSON,)) -> None:
        self.status = status
        self.body = body
        self.headers = headers


class BadRequest(Exception):
    """The request is at fault; the text is for who sent it. A script says so with any error that has `bad_request`."""


def refusal(status: int, sentence: str, number: str, headers: Sequence[Header] = ()) -> Answer:
    """An answer that says why there is no other."""
    body = json.dumps({"message": sentence, "request_id": number}).encode("ascii")
    return Answer(status, body, (JSON, *headers))


class Answering:
    """Answers requests with one script. Its methods are called in whatever thread the script lives in."""

    def __init__(self, script: Script, log: Log) -> None:
        self._script = script
        self._log = log
        self._argument: Callable[[Request], Any] = self._text
        self._run: Callable[[Any], Any] = script.run
        if script.raw:
            self._argument = _raw
        elif script.schema:
            self._argument, self._run = self._read_parameters, self._run_named

    def answer(self, request: Request) -> Answer:
        """The answer to one request."""
        request_id.set(request.id)
        try:
            result = self._run(self._argument(request))
            return Answer(200, to_json(result)) if type(result) is not AMLResponse else _write_result(result)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the log has it)
            return self._fail(error, request.id)

    async def answer_later(self, request: Request) -> Answer:
        """The answer to one request, of a script whose `run` is asynchronous."""
        request_id.set(request.id)
        try:
            return _write_result(await self._run(self._argument(request)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the log has it)
            return self._fail(error, request.id)

    def answer_all(self, requests: List[Request]) -> List[Answer]:
        """The answers to a batch: `run` gets the list of the bodies that can be read, and gives as many results."""
        answers: Dict[int, Answer] = {}
        texts: List[str] = []
        readable: List[Request] = []
        for request in requests:
            try:
                texts.append(self._text(request))
                readable.append(request)
            except BadRequest as error:
                answers[id(request)] = self._fail(error, request.id)
        if readable:
            answers.update(zip(map(id, readable), self._batch(readable, texts)))
        return [answers[id(request)] for request in requests]

    def _batch(self, requests: List[Request], texts: List[str]) -> List[Answer]:
        request_id.set(",".join(request.id for request in requests))
        try:
            results = self._script.run(texts)
            if hasattr(results, "tolist"):
                results = results.tolist()
            if not isinstance(results, (list, tuple)) or len(results) != len(texts):
                said = len(results) if isinstance(results, (list, tuple)) else type(results).__name__
                raise TypeError(
                    "run got a batch of {} and must return as many results, not {}".format(len(texts), said)
                )
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the log has it)
            return [self._fail(error, request.id) for request in requests]
        return [self._answer_one(request, result) for request, result in zip(requests, results)]

    def _answer_one(self, request: Request, result: Any) -> Answer:
        try:
            if isinstance(result, Exception):
                raise result
            return _write_result(result)
        except Exception as error:  # noqa: BLE001 (a result that cannot be written is the script's, and is logged)
            return self._fail(error, request.id)

    def _text(self, request: Request) -> str:
        if request.method == "GET":
            return json.dumps(_query(request))
        try:
            return request.body.decode("utf-8")
        except UnicodeDecodeError:
            raise BadRequest("The body is not text in UTF-8.") from None

    def _read_parameters(self, request: Request) -> Dict[str, Any]:
        """The parameters that the schema names."""
        schema = self._script.schema
        assert schema is not None
        data = _query(request) if request.method == "GET" else _json(self._text(request))
        if not isinstance(data, dict):
            raise BadRequest("The body must be a JSON object with {}.".format(_join_names(schema.names)))
        missing, unknown = schema.names - set(data), set(data) - schema.names
        if missing:
            raise BadRequest("The request lacks {}.".format(_join_names(missing)))
        if unknown:
            raise BadRequest("The request may only have {}.".format(_join_names(schema.names)))
        return data

    def _run_named(self, data: Dict[str, Any]) -> Any:
        """Calls `run` through the decorators of inference-schema. Raises BadRequest if they refuse the data."""
        try:
            return self._script.run(**data)
        except Exception as error:
            schema = self._script.schema
            if schema is None or not self._script.fault_of_the_request(error.__traceback__):
                raise
            self._log.message("request refused: " + summarize(error))
            told = misfits(schema.given, data) or "The values do not fit the schema that /swagger.json shows."
            raise BadRequest(told) from None

    def _fail(self, error: BaseException, number: str) -> Answer:
        """4xx if the request was wrong. Otherwise the answer only has the id under which the log tells the rest."""
        if isinstance(error, BadRequest) or getattr(error, "bad_request", False):
            return refusal(400, str(error), number)
        request_id.set(number)
        self._log.message("run failed: " + summarize(error) + "\n" + own_traceback(error))
        return refusal(
            500, "The scoring script failed. The log of the service tells more under this request_id.", number
        )


def _raw(request: Request) -> AMLRequest:
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
    return AMLRequest(request.method, "/score", request.query.decode("latin-1"), headers, request.body)


def _query(request: Request) -> Dict[str, str]:
    return dict(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest("The body is not valid JSON.") from None


def _join_names(names: Any) -> str:
    return ", ".join(sorted(names))


def _write_result(result: Any) -> Answer:
    """The result of `run` as an answer. Raises TypeError if JSON cannot say it."""
    if isinstance(result, AMLResponse):
        headers = tuple(
            _header(name, value) for name, value in result.headers.items() if name.lower() not in _KEPT_BACK
        )
        return Answer(result.status_code if 200 <= result.status_code < 600 else 500, result.data, headers)
    return Answer(200, to_json(result))


def _header(name: str, value: str) -> Header:
    if any(letter in name + value for letter in "\r\n\0"):
        raise ValueError("a header of the AMLResponse has a line break: {!r}".format(name))
    return name.lower().encode("latin-1"), value.encode("latin-1", "replace")


def to_json(result: Any) -> bytes:
    """JSON; arrays become lists, and what is no number (NaN, infinite) becomes null."""
    if orjson is not None:
        try:
            return orjson.dumps(result, _plain, orjson.OPT_SERIALIZE_NUMPY)
        except TypeError:
            # Keys that are numbers, integers over 64 bits: the standard library can, or says what is wrong.
            pass
    try:
        return json.dumps(result, default=_plain, allow_nan=False).encode("ascii")
    except ValueError:
        return json.dumps(_finite(result), default=_plain).encode("ascii")


def _plain(value: Any) -> Any:
    convert: Optional[Callable[[], Any]] = getattr(value, "tolist", None)
    if convert is None:
        raise TypeError("run returned a {}, which JSON cannot say".format(type(value).__name__))
    return convert()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    return value
