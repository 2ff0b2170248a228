"""The application: one wrapper around every handler.

For each request it finds the route, checks the limits, identifies the caller, checks the permission, reads the
arguments, calls the handler or the operation, and answers errors in one format. There is no other way to a handler.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trainmaster import __version__
from trainmaster.job.errors import ServiceException, TrainmasterError
from trainmaster.server.access_log import AccessLog
from trainmaster.server.answers import lasts, write_answer, write_plain
from trainmaster.server.api.arguments import check_types, read_arguments
from trainmaster.server.api.routing import NoRouteError, Routing
from trainmaster.server.api.signatures import read_signature
from trainmaster.server.api.table import Operation, Route
from trainmaster.server.bodies import LimitedBody, LimitedRequest, check_length
from trainmaster.server.call import Call, Parts
from trainmaster.server.errors import HttpError, describe_error, refuse, status_of
from trainmaster.server.forwarding import forward
from trainmaster.server.hooks import Changes, Identity, KeptAnswer
from trainmaster.server.identity.audit import Change
from trainmaster.server.mlflow.paths import describe_for_mlflow, find_path, is_mlflow
from trainmaster.server.operations import adapt
from trainmaster.server.permissions import NOBODY, Caller, Permission
from trainmaster.server.proxies import replace_proxy
from trainmaster.server.questions import identify_question, may_keep
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.server")

_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_PROCESS = secrets.token_hex(6)
_NUMBERS = itertools.count(1)
"""Together they identify a request."""
_VERSION = (b"x-trainmaster-version", __version__.encode())
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    # Answers depend on the caller, and some have a secret.
    (b"cache-control", b"no-store"),
)
_EVENTS = "text/event-stream"
_ROLES = {Permission.READ: "reader", Permission.CONTRIBUTE: "contributor", Permission.OWN: "owner"}
_CHANGING = (Permission.CONTRIBUTE, Permission.OWN)
_NOT_FOUND = "(none)"
"""The path in the counters for requests without a route."""


class App:
    """The ASGI application of a server."""

    def __init__(
        self,
        parts: Parts,
        identity: Identity,
        changes: Changes,
    ) -> None:
        self.parts = parts
        self._identity = identity
        self._changes = changes
        self._access = AccessLog(parts.settings.access_log)
        self._routing = Routing(parts.table)
        self._signatures = {id(route): read_signature(route) for route in parts.table}
        self._kept_routes = frozenset(id(route) for route in parts.table if may_keep(route))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            # No WebSocket, so none past the identification.
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        maintenance = start_task("maintenance of the server's database", self._changes.maintain)
        takeover = start_task("looking for runs without a dispatcher", self._take_over)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        maintenance.cancel()
        takeover.cancel()
        await asyncio.wait([maintenance, takeover])
        self.parts.feeds.close()
        self._access.flush()
        await self.parts.dispatchers.close()
        await asyncio.to_thread(self.parts.identity.close)
        await send({"type": "lifespan.shutdown.complete"})

    async def _take_over(self) -> None:
        parts = self.parts
        await parts.leaders.take_over(lambda: [each.folder for each in parts.workspaces.list()], parts.dispatchers)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.parts.settings.proxies:
            replace_proxy(scope, self.parts.settings.proxies)
        exchange = _Exchange(scope)
        observation = self.parts.observation
        observation.in_progress += 1
        try:
            response = await self._answer(exchange, scope, receive)
            exchange.status = response.status_code
            # Clients refuse a server that is too far from their own version.
            present = {name for name, _ in response.raw_headers}
            response.raw_headers += [
                (b"x-request-id", exchange.request_id.encode()),
                _VERSION,
                *(each for each in _HEADERS if each[0] not in present),
            ]
            if exchange.has_body and not (exchange.body and exchange.body.is_complete):
                # What is left of the body is not read.
                response.headers["connection"] = "close"
            observation.streams += response.media_type == _EVENTS
            try:
                await response(scope, receive, send)
            finally:
                observation.streams -= response.media_type == _EVENTS
        except ClientDisconnect:
            exchange.status = 499
        finally:
            observation.in_progress -= 1
            self._note(exchange)

    async def _answer(self, exchange: _Exchange, scope: Scope, receive: Receive) -> Response:
        try:
            return await self._find_answer(exchange, scope, receive)
        except ClientDisconnect:
            raise
        except HttpError as error:
            return _answer_error(error.error, error.status, exchange, error.headers)
        except TrainmasterError as error:
            status = 503 if isinstance(error, ServiceException) else status_of(error)
            return _answer_error(error, status, exchange)
        except OSError as error:
            log.error("request %s: %s", exchange.request_id, error)
            failure = ServiceException("the server could not do this", cause=error.strerror or type(error).__name__)
            return _answer_error(failure, 507 if error.errno == 28 else 500, exchange)
        except Exception:
            # Without the arguments, which may contain a secret.
            log.exception("request %s: %s %s", exchange.request_id, exchange.method, exchange.path)
            failure = ServiceException("the server failed", hint="Its log has more under this request id.")
            return _answer_error(failure, 500, exchange)

    async def _find_answer(self, exchange: _Exchange, scope: Scope, receive: Receive) -> Response:
        limits = self.parts.settings.limits
        if self.parts.observation.in_progress > limits.concurrent_requests:
            raise refuse(503, "the server has too many requests", hint="Try again later.", Retry_After="1")
        route, names = self._find_route(exchange, scope)
        exchange.route = route
        exchange.body = LimitedBody(receive, route.largest_body, limits.body_seconds)
        request = LimitedRequest(scope, exchange.body)
        exchange.caller = caller = await self._identity.identify(request, route, names)
        try:
            self._check_permission(route, caller, names)
        except HttpError as error:
            if (route.changes or route.is_counted) and caller.is_signed_in:
                await self._changes.refuse(
                    _describe_change(request, route, caller, exchange.request_id, names), error.status
                )
            raise
        check_length(request, route.largest_body)
        workspace = names.get("workspace")
        served = self.parts.workspaces.get(workspace) if workspace is not None else None
        call = Call(self.parts, request, route, caller, exchange.request_id, names, served)
        if served is not None and (elsewhere := await self.parts.leaders.find(served.folder)):
            return await self._forward(call, elsewhere)
        if route.is_counted:
            return await self._count(call)
        if not route.changes:
            return await self._run(call, await request.body() if exchange.has_body and not route.streams_body else b"")
        return await self._change(call)

    async def _forward(self, call: Call, server: str) -> Response:
        """The answer of the server that has the workspace's dispatcher, which also writes its audit log."""
        folder, leaders = call.workspace.folder, self.parts.leaders
        try:
            answer = await forward(call.request, server, call.request_id)
        except HttpError:
            await leaders.note_silence(folder, self.parts.dispatchers)
            raise
        leaders.note_answer(folder)
        return answer

    def _find_route(self, exchange: _Exchange, scope: Scope) -> tuple[Route, Mapping[str, str]]:
        try:
            return self._routing.find(exchange.method, find_path(scope, self.parts.workspaces))
        except UnicodeDecodeError:
            raise refuse(400, "the path is not UTF-8") from None
        except NoRouteError as missing:
            if missing.allowed:
                allowed = ", ".join(missing.allowed)
                raise refuse(405, f"{exchange.method[:20]} is not possible here", Allow=allowed) from None
            raise refuse(404, "there is nothing at this path", hint="GET /openapi.json lists all paths.") from None

    def _check_permission(self, route: Route, caller: Caller, names: Mapping[str, str]) -> None:
        workspace = names.get("workspace", "")
        allowed = caller.may(route.permission, workspace, route.open_to_jobs)
        if route.only_for_jobs and caller.scope is None:
            allowed = False
        if caller.scope is not None and "run_id" in names and names["run_id"] != caller.scope.run_id:
            allowed = False
        if allowed and route.is_mlflow and caller.session and route.permission in _CHANGING:
            raise refuse(
                403,
                "MLflow's pages cannot change anything on this server",
                hint="Use the studio, or MLflow's client with a token.",
            )
        if allowed:
            return
        if not caller.is_signed_in:
            raise refuse(
                401,
                "you are not signed in",
                hint="Sign in with 'trainmaster login', or send the header Authorization: Bearer TOKEN.",
                WWW_Authenticate="Bearer",
            )
        raise refuse(403, "you may not do this", cause=_explain(route, workspace))

    async def _change(self, call: Call) -> Response:
        """Carry out a change: the same idempotency key gives the first answer again, and the audit log has it."""
        request, route = call.request, call.route
        body = b"" if route.streams_body else await request.body()
        # What is uploaded has its name or digest, and may be uploaded again.
        key = "" if route.streams_body else _read_key(request)
        change = _describe_change(request, route, call.caller, call.request_id, call.names)
        begun = await self._changes.begin(change, _name_holder(call.caller), key, _fingerprint(request, body))
        if isinstance(begun, KeptAnswer):
            return Response(begun.body, begun.status, {"idempotency-replayed": "true"}, begun.media_type)
        status, answer = 500, None
        try:
            response = await self._run(call, body)
            status = response.status_code
            if not route.secret_answer and not isinstance(response, StreamingResponse):
                answer = KeptAnswer(status, bytes(response.body), response.media_type or "application/json")
        except HttpError as error:
            status = error.status
            raise
        except TrainmasterError as error:
            status = status_of(error)
            raise
        finally:
            # Without an answer the next request with this key tries again: operations may be repeated.
            await asyncio.shield(self._changes.finish(begun, status, answer))
        return response

    async def _count(self, call: Call) -> Response:
        """Carry out one of many changes, which the audit log counts by what they are about."""
        name = call.route.name_target
        path = call.request.scope["raw_path"].decode("ascii", "replace")
        target = await name(call) if name is not None else f"{path.rpartition('/')[0]}/*"
        change = _describe_change(call.request, call.route, call.caller, call.request_id, call.names, target)
        counted = await self._changes.begin_counted(change)
        status = 500
        try:
            response = await self._run(call, b"" if call.route.streams_body else await call.request.body())
            status = response.status_code
        except HttpError as error:
            status = error.status
            raise
        except TrainmasterError as error:
            status = status_of(error)
            raise
        finally:
            if not self._changes.count(counted, status):
                await asyncio.shield(self._changes.finish_counted(counted, change, status))
        return response

    async def _run(self, call: Call, body: bytes) -> Response:
        if isinstance(call.route.target, Operation):
            return Response(await self._call_operation(call, call.route.target, body), media_type="application/json")
        signature = self._signatures[id(call.route)]
        arguments = read_arguments(signature, call.request, call.names, body)
        check_types(signature, arguments)
        return _respond(await call.route.target(call, **arguments))

    async def _call_operation(self, call: Call, target: Operation, body: bytes) -> bytes:
        """The answer of the dispatcher, or the one to the same question if nothing has changed since."""
        question = identify_question(call, body) if id(call.route) in self._kept_routes else None
        if question is None:
            return write_answer(target, await self._ask_dispatcher(call, target, body))
        kept = self.parts.dispatchers.find_kept_answers(call.workspace.folder)
        answer = kept.find(question)
        if answer is not None:
            return answer
        version = kept.read_version()
        line = await self._ask_dispatcher(call, target, body)
        answer = write_answer(target, line)
        if lasts(line):
            kept.keep(question, answer, version)
        return answer

    async def _ask_dispatcher(self, call: Call, target: Operation, body: bytes) -> bytes:
        arguments = read_arguments(self._signatures[id(call.route)], call.request, call.names, body)
        arguments = {**arguments, **call.route.fixed}
        if target.by_name:
            arguments = {target.by_name: arguments}
        arguments = adapt(target.name, arguments, call.caller, call.workspace.name)
        return await self.parts.dispatchers.answer(call.workspace.folder, target.name, arguments)

    def _note(self, exchange: _Exchange) -> None:
        seconds = time.perf_counter() - exchange.begun
        route = exchange.route
        self.parts.observation.note(
            exchange.method if route else "", route.path if route else _NOT_FOUND, exchange.status, seconds
        )
        self._access.write(
            method=exchange.method,
            path=exchange.path,
            status=exchange.status,
            seconds=seconds,
            caller=exchange.caller.name,
            client=exchange.client,
            request_id=exchange.request_id,
            operation=route.operation if route else "",
        )


class _Exchange:
    """What is known about one request, for the logs."""

    __slots__ = ("begun", "body", "caller", "client", "has_body", "method", "path", "request_id", "route", "status")

    def __init__(self, scope: Scope) -> None:
        self.begun = time.perf_counter()
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("ascii", "replace")
        self.client = scope["client"][0] if scope.get("client") else ""
        self.request_id = ""
        self.has_body = False
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                self.request_id = _check_request_id(value)
            elif (name == b"content-length" and value != b"0") or name == b"transfer-encoding":
                self.has_body = True
        self.request_id = self.request_id or f"{_PROCESS}-{next(_NUMBERS):x}"
        self.body: LimitedBody | None = None
        self.route: Route | None = None
        self.caller = NOBODY
        self.status = 500


def _check_request_id(value: bytes) -> str:
    """The client's own id, if it is a plain one."""
    text = value.decode("ascii", "replace")
    return text if _REQUEST_ID.fullmatch(text) else ""


def _explain(route: Route, workspace: str) -> str:
    if route.only_for_jobs:
        return "Only jobs may, with the token of their run."
    if route.permission is Permission.ADMINISTER:
        return "It needs an administrator of the server."
    return f"It needs the role {_ROLES.get(route.permission, 'owner')} in the workspace '{workspace[:60]}'."


def _read_key(request: Request) -> str:
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise refuse(400, "the header Idempotency-Key has 1 to 200 visible characters")
    return key or ""


def _name_holder(caller: Caller) -> str:
    """Whose idempotency keys these are: those of a job are not those of the user who submitted it."""
    return caller.name if caller.scope is None else caller.credential


def _fingerprint(request: Request, body: bytes) -> bytes:
    """Tells whether two requests are the same."""
    digest = hashlib.sha256()
    for part in (request.method.encode(), request.scope["raw_path"], request.scope["query_string"], body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def _describe_change(
    request: Request, route: Route, caller: Caller, request_id: str, names: Mapping[str, str], target: str = ""
) -> Change:
    return Change(
        caller=caller.name,
        credential=caller.credential,
        method=route.method,
        route=route.path,
        operation=route.operation,
        workspace=names.get("workspace", ""),
        target=target or request.scope["raw_path"].decode("ascii", "replace"),
        request_id=request_id,
        address=request.client.host if request.client else "",
    )


def _respond(answer: Any) -> Response:
    """The response for what a handler returned."""
    if isinstance(answer, Response):
        return answer
    return Response(write_plain(to_plain(answer)), media_type="application/json")


def _answer_error(
    error: TrainmasterError, status: int, exchange: _Exchange, headers: Mapping[str, str] | None = None
) -> Response:
    if is_mlflow(exchange.path.encode()):
        body = orjson.dumps(describe_for_mlflow(error, status))
    else:
        body = orjson.dumps(describe_error(error, status, exchange.request_id))
    return Response(body, status, dict(headers or {}), "application/json")
