"""The ASGI app: paths, keys, size and time limits. It is small, because every request passes through it."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from time import monotonic, perf_counter, time
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import numbers as places
from . import openapi
from .answering import JSON, Answer, Answering, Header, Request, refusal
from .bodies import Bodies, Gone, Late, Receive, TooLarge
from .calling import Batches, MainThread, Threads
from .keys import Keys
from .log import Log, Printed
from .numbers import Numbers
from .script import Script, ScriptError, load
from .settings import Settings, read

Scope = Dict[str, Any]
Send = Callable[[Dict[str, Any]], Awaitable[None]]

TEXT: Header = (b"content-type", b"text/plain; charset=utf-8")
CLOSE: Header = (b"connection", b"close")
KEY = b"x-trainmaster-key"
_METRICS: Header = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_COUNTERS, _PROBES = ("/metrics",), ("/healthz", "/readyz")
_METHODS = ("GET", "POST")
_RAW_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ID_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
# Counting and logging this many requests at once is cheap and does not delay others.
_SETTLED_AT_ONCE = 64
_SETTLED_AFTER_SECONDS = 0.005


class _TimeOver(Exception):
    """The script did not answer in time."""


def from_file(path: str) -> "Application":
    """Create the app that `server.json` describes, for any ASGI server; the script is loaded when the server starts."""
    return Application(read(path), Numbers(), Log(2))


class Application:
    """One service. `use` sets its script; under a foreign ASGI server it loads the script itself."""

    def __init__(self, settings: Settings, numbers: Numbers, log: Log) -> None:
        self.settings = settings
        self.numbers = numbers
        self.log = log
        self.draining = False
        self._unlogged = _COUNTERS if settings.log_probes else _COUNTERS + _PROBES
        self._mine = numbers.mine
        self._keys = Keys(settings.keys_file) if settings.keys_file else None
        self._prefix = os.urandom(4).hex()
        self._count = itertools.count(1)
        self._pages: Dict[str, Callable[[Scope], Answer]] = {
            "/": lambda scope: Answer(200, b"Healthy", (TEXT,)),
            "/healthz": lambda scope: Answer(200, b"alive", (TEXT,)),
            "/readyz": self._readiness,
            "/metrics": self._metrics,
            "/swagger.json": self._description,
        }
        self._bodies = Bodies(settings.body_bytes, settings.seconds)
        # Ordered by deadline, because all requests have the same time limit.
        self._pending: "Dict[asyncio.Future[Any], float]" = {}
        self._batches: Optional[Batches] = None
        self._done: List[Tuple[float, str, str, str, int, float, int, int]] = []
        self._methods: Tuple[str, ...] = _METHODS

    def use(self, script: Script, caller: Union[MainThread, Threads], loop: asyncio.AbstractEventLoop) -> None:
        """Answer requests with this script from now on; `caller` calls it."""
        self._caller = caller
        self._loop = loop
        self._asynchronous = script.asynchronous
        self._answering = Answering(script, self.log)
        self._methods = _RAW_METHODS if script.raw else _METHODS
        self._documents = {
            name: json.dumps(make(self.settings, script)).encode("ascii")
            for name, make in (("3", openapi.describe), ("2", openapi.describe_v2))
        }
        if self.settings.max_batch_size > 1:
            wait = self.settings.max_latency_ms / 1000.0
            self._batches = Batches(self.settings.max_batch_size, wait, self._answer_batch, loop)
        loop.call_soon_threadsafe(self._look_at_the_clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._live(receive, send)
            return
        began = perf_counter()
        authorization = origin = length = None
        number = ""
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == KEY:
                # For proxies that need the header Authorization for themselves.
                authorization = authorization or b"Bearer " + value
            elif name == b"content-length":
                length = value
            elif name == b"origin":
                origin = value
            elif name == b"x-request-id" and 0 < len(value) <= 64 and _ID_LETTERS.issuperset(value):
                number = value.decode("ascii")
        number = number or self.new_number()
        received = 0
        answer = self._refuse(scope, authorization, origin, number)
        if answer is None and scope["path"] == "/score":
            try:
                answer, received = await self._score(scope, receive, length, number)
            except Gone:
                self.note(scope, number, 499, began, received, 0)
                return
        elif answer is None:
            answer = self._pages[scope["path"]](scope)
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": self.headers(answer, number, origin)}
        )
        await send({"type": "http.response.body", "body": answer.body})
        self.note(scope, number, answer.status, began, received, len(answer.body))

    def _refuse(
        self, scope: Scope, authorization: Optional[bytes], origin: Optional[bytes], number: str
    ) -> Optional[Answer]:
        """The error for a request that must not reach the script, or None."""
        path, method = scope["path"], scope["method"]
        if path == "/score":
            if method == "OPTIONS" and self.settings.cors_origins:
                return self._preflight(scope)
            allowed = self._methods
        elif path in self._pages:
            allowed = ("GET", "HEAD")
        else:
            return refusal(404, "Unknown path. Send requests to /score.", number)
        if method not in allowed:
            text = "This path accepts {}.".format(" and ".join(allowed))
            return refusal(405, text, number, ((b"allow", ", ".join(allowed).encode("ascii")),))
        if self._keys is not None and path not in openapi.OPEN and not self._keys.allow(authorization):
            text = "A key of the service is required, in the header Authorization: Bearer KEY."
            return refusal(401, text, number, ((b"www-authenticate", b"Bearer"),))
        return None

    async def _score(self, scope: Scope, receive: Receive, length: Optional[bytes], number: str) -> Tuple[Answer, int]:
        """Answer an allowed request; also return the size of its body. Raises Gone."""
        mine = self._mine
        if mine[places.IN_FLIGHT] >= self.settings.in_flight:
            text = "Too many requests at once. Try again soon."
            return refusal(503, text, number, ((b"retry-after", b"1"),)), 0
        mine[places.IN_FLIGHT] += 1.0
        try:
            body = await self._bodies.read(receive, length)
            request = Request(number, scope["method"], scope["query_string"], scope["headers"], body)
            return await self._run(request), len(body)
        except Late:
            return refusal(408, "The body of the request did not arrive in time.", number, (CLOSE,)), 0
        except TooLarge:
            text = "The body is larger than the limit of {} bytes.".format(self.settings.body_bytes)
            return refusal(413, text, number, (CLOSE,)), 0
        finally:
            mine[places.IN_FLIGHT] -= 1.0

    async def _run(self, request: Request) -> Answer:
        try:
            if self._batches is not None:
                return await self._wait_for(self._batches.add(request))
            if self._asynchronous:
                return await self._wait_for(self._loop.create_task(self._answering.answer_later(request)))
            now = self._caller.now
            if now is not None:
                answer: Answer = now(self._answering.answer, request)
                return answer
            return await self._wait_for(self._caller.submit(self._answering.answer, request))
        except _TimeOver:
            text = "The scoring script did not answer within {:g} seconds.".format(self.settings.seconds)
            return refusal(504, text, request.id)

    async def _wait_for(self, future: "asyncio.Future[Answer]") -> Answer:
        self._pending[future] = monotonic() + self.settings.seconds
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                raise _TimeOver from None
            raise
        finally:
            self._pending.pop(future, None)

    async def _answer_batch(self, batch: List[Request]) -> List[Answer]:
        self._mine[places.BATCHES] += 1.0
        self._mine[places.BATCHED] += len(batch)
        now = self._caller.now
        answers: List[Answer]
        if now is not None:
            answers = now(self._answering.answer_all, batch)
        else:
            answers = await self._caller.submit(self._answering.answer_all, batch)
        return answers

    def new_number(self) -> str:
        """Create an id for a request that has none."""
        return f"{self._prefix}{next(self._count):06x}"

    def headers(self, answer: Answer, number: str, origin: Optional[bytes]) -> List[Header]:
        """The headers of an answer."""
        headers = [
            *answer.headers,
            (b"content-length", b"%d" % len(answer.body)),
            (b"x-request-id", number.encode("ascii")),
        ]
        if self.draining:
            headers.append(CLOSE)
        if origin is not None and self.settings.cors_origins:
            headers += self._cors(origin)
        return headers

    def note(self, scope: Scope, number: str, status: int, began: float, received: int, sent: int) -> None:
        """Remember an answered request for `settle`."""
        self._done.append(
            (time(), number, scope["method"], scope["path"], status, perf_counter() - began, received, sent)
        )
        if len(self._done) == 1:
            self._loop.call_later(_SETTLED_AFTER_SECONDS, self.settle)
        elif len(self._done) >= _SETTLED_AT_ONCE:
            self.settle()

    def settle(self) -> None:
        """Count and log the answered requests together, which takes half the time of doing it one by one."""
        done, self._done = self._done, []
        lines = []
        stamp, count_request = self.log.stamp, self.numbers.count_request
        for moment, number, method, path, status, seconds, received, sent in done:
            base = places.SCORED
            if path != "/score":
                base = places.OTHERS
                path = path if path in self._pages else ascii(path)[1:200]
            count_request(base, status, seconds, received, sent)
            # Whoever watches the counters asks for them every few seconds.
            if path in self._unlogged and status == 200:
                continue
            lines.append(
                f"{stamp(moment)} {number} {method} {path} {status} {seconds * 1000:.1f}ms {received}B {sent}B\n"
            )
        if lines:
            self.log.write("".join(lines))

    def call_soon(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in the event loop, from any thread."""
        self._loop.call_soon_threadsafe(function, *arguments)

    # Pages

    def open_page(self, path: str) -> Optional[Answer]:
        """A page that needs no key, from any thread; None for other paths."""
        return self._pages[path]({}) if path in openapi.OPEN else None

    def _metrics(self, scope: Scope) -> Answer:
        self.settle()
        return Answer(200, self.numbers.text().encode("ascii"), (_METRICS,))

    def _readiness(self, scope: Scope) -> Answer:
        if self.draining:
            return refusal(503, "The service is shutting down.", "-", (CLOSE,))
        return Answer(200, b"ready", (TEXT,))

    def _description(self, scope: Scope) -> Answer:
        wanted = b"version=2" in scope["query_string"]
        return Answer(200, self._documents["2" if wanted else "3"], (JSON,))

    def _preflight(self, scope: Scope) -> Answer:
        wanted = dict(scope["headers"]).get(b"access-control-request-headers", b"authorization, content-type")
        return Answer(
            200,
            b"",
            (
                (b"access-control-allow-methods", ", ".join(self._methods).encode("ascii")),
                (b"access-control-allow-headers", wanted[:1000]),
                (b"access-control-max-age", b"600"),
            ),
        )

    def _cors(self, origin: bytes) -> Sequence[Header]:
        if "*" in self.settings.cors_origins:
            return ((b"access-control-allow-origin", b"*"),)
        if origin.decode("latin-1") in self.settings.cors_origins:
            return ((b"access-control-allow-origin", origin), (b"vary", b"origin"))
        return ((b"vary", b"origin"),)

    # Time

    def _look_at_the_clock(self) -> None:
        """Cancel overdue requests and write a heartbeat; called regularly."""
        now = monotonic()
        self._bodies.end_overdue(now)
        for future, _ in list(itertools.takewhile(lambda pair: pair[1] < now, self._pending.items())):
            del self._pending[future]
            future.cancel()
        self._mine[places.HEARTBEAT] = now
        self._loop.call_later(min(0.1, self.settings.seconds / 4), self._look_at_the_clock)

    # Under a foreign ASGI server

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        loop = asyncio.get_running_loop()
        caller = Threads(self.settings.threads)
        sys.stdout = Printed(self.log, sys.stdout)
        try:
            script = await caller.submit(load, self.settings)
        except ScriptError as error:
            self.log.message("{}\n{}{}".format(error.headline, error.details, error.hint))
            await send({"type": "lifespan.startup.failed", "message": error.headline})
            return
        self.use(script, caller, loop)
        self._mine[places.READY] = 1.0
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.settle()
        await send({"type": "lifespan.shutdown.complete"})
