"""From a request to an answer: reads the body as the script expects it, calls `run`, writes the result as JSON."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple
from urllib.parse import parse_qsl

from .log import Log, request_id
from .raw import AMLRequest, AMLResponse
from .schema_errors import describe_errors
from .script import Script, own_traceback, summarize

try:
    import orjson
except ImportError:  # the standard library works too, but takes twice as long
    orjson = None  # type: ignore[assignment]

Header = Tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
# Headers that only the server sets.
_KEPT_BACK = frozenset(("content-length", "transfer-encoding", "connection", "x-request-id", "date"))


class Request:
    """One complete request to /score."""

    __slots__ = ("body", "headers", "id", "method", "query")

    def __init__(self, number: str, method: str, query: bytes, headers: List[Header], body: bytes) -> None:
        self.id = number
        self.method = method
        self.query = query
        self.headers = headers
        self.body = body


class Answer:
    """The answer to a request."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: Sequence[Header] = (JSON,)) -> None:
        self.status = status
        self.body = body
        self.headers = headers


class BadRequest(Exception):
    """The request is wrong; the text is for its sender. A script raises any error with a true `bad_request`."""


def refusal(status: int, sentence: str, number: str, headers: Sequence[Header] = ()) -> Answer:
    """An answer with an error message."""
    body = json.dumps({"message": sentence, "request_id": number}).encode("ascii")
    return Answer(status, body, (JSON, *headers))


class Answering:
    """Answers requests with one script. Its methods are called in the thread of the script."""

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
        """Answer one request."""
        request_id.set(request.id)
        try:
            result = self._run(self._argument(request))
            return Answer(200, to_json(result)) if type(result) is not AMLResponse else _write_result(result)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the log has it)
            return self._fail(error, request.id)

    async def answer_later(self, request: Request) -> Answer:
        """Answer one request with an asynchronous `run`."""
        request_id.set(request.id)
        try:
            return _write_result(await self._run(self._argument(request)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the log has it)
            return self._fail(error, request.id)

    def answer_all(self, requests: List[Request]) -> List[Answer]:
        """Answer a batch: `run` gets the list of readable bodies and returns as many results."""
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
                found = len(results) if isinstance(results, (list, tuple)) else type(results).__name__
                raise TypeError(
                    "run received a batch of {} and must return as many results, not {}".format(len(texts), found)
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
            raise BadRequest("The body is not UTF-8 text.") from None

    def _read_parameters(self, request: Request) -> Dict[str, Any]:
        """Read the parameters of the schema."""
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
        """Call `run` through the decorators of inference-schema. Raises BadRequest if they reject the data."""
        try:
            return self._script.run(**data)
        except Exception as error:
            schema = self._script.schema
            if schema is None or not self._script.fault_of_the_request(error.__traceback__):
                raise
            self._log.message("request refused: " + summarize(error))
            errors = describe_errors(schema.given, data)
            raise BadRequest(errors or "The values do not match the schema in /swagger.json.") from None

    def _fail(self, error: BaseException, number: str) -> Answer:
        """Answer 400 if the request was wrong; otherwise 500 with the id under which the log has the details."""
        if isinstance(error, BadRequest) or getattr(error, "bad_request", False):
            return refusal(400, str(error), number)
        request_id.set(number)
        self._log.message("run failed: " + summarize(error) + "\n" + own_traceback(error))
        return refusal(500, "The scoring script failed. See the log of the service for this request_id.", number)


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
    """Convert the result of `run` to an answer. Raises TypeError if it cannot be written as JSON."""
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
    """Write JSON; arrays become lists, and NaN and infinity become null."""
    if orjson is not None:
        try:
            return orjson.dumps(result, _plain, orjson.OPT_SERIALIZE_NUMPY)
        except TypeError:
            # The standard library supports numeric keys and integers over 64 bits, or explains the error.
            pass
    try:
        return json.dumps(result, default=_plain, allow_nan=False).encode("ascii")
    except ValueError:
        return json.dumps(_finite(result), default=_plain).encode("ascii")


def _plain(value: Any) -> Any:
    convert: Optional[Callable[[], Any]] = getattr(value, "tolist", None)
    if convert is None:
        raise TypeError("run returned a {}, which cannot be written as JSON".format(type(value).__name__))
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
