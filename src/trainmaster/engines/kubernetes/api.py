"""Requests to a Kubernetes API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from trainmaster import __version__
from trainmaster.engines.kubernetes.access import Access, Headers
from trainmaster.engines.kubernetes.api_errors import ApiError, explain_answer, explain_loss
from trainmaster.engines.kubernetes.connection import Connection, ConnectionPool, Response, host_header
from trainmaster.engines.kubernetes.rights import Rights, name_right
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.retry import Backoff, retry

Object = dict[str, Any]

# Small enough that reading one page does not keep the event loop busy: a pod has about 8 kB.
_PAGE = 100
_LISTS = 3
_CONNECTIONS = 16
_ANSWER_SECONDS = 60.0
_PATIENCE = 20.0
_ANSWER_BYTES = 64 * 1024 * 1024
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TEMPORARY = frozenset({429, 500, 502, 503, 504})


class Api:
    """A client of one API server. Paths are those of the API; `pods` and the like are paths in the target's namespace.

    Errors are ApiError (the server refused), Unreachable (it does not answer now, after `patience` seconds of trying)
    or another ComputeTargetException (credentials or certificates that cannot be used).
    """

    def __init__(self, access: Access, connections: int = _CONNECTIONS, patience: float = _PATIENCE) -> None:
        self.access = access
        self.namespace = access.namespace
        self._pool = ConnectionPool(access, connections)
        self._patience = patience
        self._rights = Rights()

    def core(self, kind: str) -> str:
        """The path of a kind of the core group in the namespace: "pods"."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/{kind}"

    def group(self, version: str, kind: str) -> str:
        """The path of a kind of another group in the namespace: ("apps/v1", "deployments")."""
        return f"/apis/{version}/namespaces/{quote(self.namespace, safe='')}/{kind}"

    pods = property(lambda self: self.core("pods"))
    services = property(lambda self: self.core("services"))
    secrets = property(lambda self: self.core("secrets"))
    config_maps = property(lambda self: self.core("configmaps"))
    events = property(lambda self: self.core("events"))
    claims = property(lambda self: self.core("persistentvolumeclaims"))
    deployments = property(lambda self: self.group("apps/v1", "deployments"))

    async def get(self, path: str, **query: Any) -> Object:
        """Reads an object."""
        return await self._send("GET", path, query)

    async def exists(self, path: str) -> bool:
        """Whether there is such an object, or such a version of a group ("/apis/autoscaling/v2")."""
        try:
            await self.get(path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def list_objects(
        self, path: str, labels: str = "", fields: str = "", reduce: Callable[[Object], Any] = lambda item: item
    ) -> tuple[list[Any], str]:
        """All objects, and the version from which a watch goes on. `reduce` keeps of each what the caller needs."""
        for attempt in range(_LISTS):
            try:
                return await self._list_pages(path, labels, fields, reduce)
            except ApiError as error:
                # The list took so long that the server has forgotten where it began.
                if error.status != 410 or attempt == _LISTS - 1:
                    raise
        raise AssertionError

    async def _list_pages(
        self, path: str, labels: str, fields: str, reduce: Callable[[Object], Any]
    ) -> tuple[list[Any], str]:
        items: list[Any] = []
        query: dict[str, Any] = {"limit": _PAGE, "labelSelector": labels, "fieldSelector": fields}
        while True:
            page = await self._send("GET", path, query)
            items += [reduce(item) for item in page.get("items") or ()]
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion") or "")
            query["continue"] = metadata["continue"]

    async def create(self, path: str, body: Mapping[str, Any]) -> Object:
        """Creates an object. One with a name is sent again after a lost connection, which may answer AlreadyExists."""
        named = bool((body.get("metadata") or {}).get("name"))
        return await self._send("POST", path, {}, body, may_repeat=named)

    async def patch(self, path: str, body: Any, kind: str = "merge", **query: Any) -> Object:
        """Changes an object."""
        return await self._send("PATCH", path, query, body, content=_PATCHES[kind])

    async def replace(self, path: str, body: Mapping[str, Any]) -> Object:
        """Replaces an object."""
        return await self._send("PUT", path, {}, body)

    async def delete(self, path: str, grace: int | None = None, propagation: str | None = None) -> None:
        """Deletes an object; one that does not exist is fine."""
        body = {"gracePeriodSeconds": grace, "propagationPolicy": propagation}
        options = {"kind": "DeleteOptions", "apiVersion": "v1", **{k: v for k, v in body.items() if v is not None}}
        try:
            await self._send("DELETE", path, {}, options)
        except ApiError as error:
            if error.status != 404:
                raise

    @contextlib.asynccontextmanager
    async def stream(self, path: str, **query: Any) -> AsyncIterator[Response]:
        """The answer to a request that takes long, as it arrives. It has a connection of its own and no retries."""
        async with self.own_connection("GET", path, query) as (_, response):
            yield response

    @contextlib.asynccontextmanager
    async def own_connection(
        self, method: str, path: str, query: Mapping[str, Any], headers: Headers | None = None
    ) -> AsyncIterator[tuple[Connection, Response]]:
        """Sends a request on a connection of its own, which is closed in the end. Raises errors of this class only."""
        for attempt in (1, 2):
            with self._explain_errors():
                async with self._pool.own() as connection:
                    async with asyncio.timeout(_ANSWER_SECONDS):
                        lines = [*(sent := await self._headers()), *(headers or [])]
                        response = await connection.request(method, _target(path, query), lines)
                        body = await _read_limited(response) if response.status >= 300 else b""
                    if response.status < 300:
                        self._rights.note_grant(name_right(method, path, query))
                        yield connection, response
                        return
            if response.status != 401 or attempt == 2 or not self.access.forget(sent):
                raise self._explain_refusal(method, path, query, response.status, response.headers, body)

    async def send_raw(self, method: str, path: str, data: bytes, headers: Headers) -> tuple[int, bytes]:
        """The status and body of any answer, for what lies behind the API server. It has no retries."""
        with self._explain_errors():
            async with self._pool.own() as connection:
                lines = [*await self._headers(), *headers]
                response = await connection.request(method, _target(path, {}), lines, data)
                return response.status, await _read_limited(response)

    async def close(self) -> None:
        """Closes all connections."""
        await self._pool.close()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any = None,
        content: str = "application/json",
        may_repeat: bool = True,
    ) -> Object:
        pauses = _Pauses(first=0.2, longest=5.0)

        def should_retry(error: ComputeTargetException) -> bool:
            if isinstance(error, ApiError):
                pauses.asked = error.retry_after
                # The server did nothing of a request that it answers with 429.
                return error.status == 429 or (may_repeat and error.status in _TEMPORARY)
            return isinstance(error, _NotSent) or (may_repeat and isinstance(error, Unreachable))

        data = b"" if body is None else json.dumps(body).encode()
        return await retry(
            lambda: self._send_once(method, path, query, data, content),
            ComputeTargetException,
            should_retry=should_retry,
            backoff=pauses,
            seconds=self._patience,
        )

    async def _send_once(self, method: str, path: str, query: Mapping[str, Any], data: bytes, content: str) -> Object:
        for attempt in (1, 2):
            sent = await self._headers()
            status, headers, answer = await self._exchange(method, _target(path, query), sent, data, content)
            if status < 300:
                self._rights.note_grant(name_right(method, path, query))
                return _read_object(self.access.server, answer)
            if status != 401 or attempt == 2 or not self.access.forget(sent):
                break
        raise self._explain_refusal(method, path, query, status, headers, answer)

    def _explain_refusal(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        status: int,
        headers: Mapping[str, str],
        answer: bytes,
    ) -> ComputeTargetException:
        error = explain_answer(method, path, status, headers, answer)
        if self._rights.is_passing(name_right(method, path, query), error, time.monotonic()):
            headline = (
                f"the Kubernetes API server {self.access.server} has just started and does not know its rules yet"
            )
            return _NotAllowedYet(headline, cause=error.cause, hint=error.hint)
        return error

    async def _exchange(
        self, method: str, target: str, headers: Headers, data: bytes, content: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        is_sent = False
        try:
            with self._explain_errors():
                async with self._pool.turn() as connection, asyncio.timeout(_ANSWER_SECONDS):
                    is_sent = True
                    content_headers = [("Content-Type", content)] if data else []
                    response = await connection.request(method, target, [*headers, *content_headers], data)
                    return response.status, response.headers, await _read_limited(response)
        except Unreachable as error:
            if is_sent:
                raise
            raise _NotSent(error.headline, cause=error.cause, hint=error.hint) from None

    async def _headers(self) -> Headers:
        return [
            ("Host", host_header(self.access)),
            ("User-Agent", f"trainmaster/{__version__}"),
            ("Accept", "application/json, */*"),
            *await self.access.headers(),
        ]

    @contextlib.contextmanager
    def _explain_errors(self) -> Any:
        try:
            yield
        except (OSError, ssl.SSLError, EOFError) as error:
            self._rights.note_loss(time.monotonic())
            raise explain_loss(self.access.server, error) from None


class _NotSent(Unreachable):
    """No connection, so the server did not get the request."""


class _NotAllowedYet(_NotSent):
    """The server refuses what it will soon allow, and did nothing."""


class _Pauses(Backoff):
    """Pauses that are at least as long as the server asks for."""

    asked = 0.0

    def next_pause(self) -> float:
        return max(super().next_pause(), self.asked)


async def _read_limited(response: Response) -> bytes:
    data = bytearray()
    async for piece in response.pieces():
        data += piece
        if len(data) > _ANSWER_BYTES:
            raise ConnectionError(f"an answer is longer than {_ANSWER_BYTES} bytes")
    return bytes(data)


def _read_object(server: str, data: bytes) -> Object:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ComputeTargetException(
            f"{server} does not answer like a Kubernetes API server", hint="Check the server in the kubeconfig file."
        )
    return answer


def _target(path: str, query: Mapping[str, Any]) -> str:
    pairs = [(name, value) for name, value in query.items() if value not in (None, "")]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path
