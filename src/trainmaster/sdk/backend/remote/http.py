"""HTTP/1.1 to one server: connections that are kept open, retries that are safe, errors as the SDK's own classes.

Every request may be repeated: reads change nothing, and a change carries an `Idempotency-Key` that stays the same for
all attempts. So a connection that is lost at any moment is opened again and the request sent again.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any
from urllib.parse import quote, urlencode

from trainmaster import __version__
from trainmaster.job.errors import AuthenticationException, ServiceException, TrainmasterError, UserErrorException
from trainmaster.sdk.backend.remote.address import ServerAddress, check_encrypted
from trainmaster.sdk.backend.remote.answers import UnavailableException, error_of, retry_pause
from trainmaster.sdk.backend.remote.notices import notify
from trainmaster.sdk.backend.remote.proxies import Proxy, find_proxy
from trainmaster.sdk.backend.remote.versions import check_version
from trainmaster.shared.retry import Backoff

CA_FILE = "TRAINMASTER_CA_FILE"

_CONNECT_SECONDS = 10.0
# Operations may take long: building, packaging. A peer that is gone is noticed by TCP, long before.
_ANSWER_SECONDS = 900.0
# A server that never answered is probably misspelt. One that did is probably being restarted.
_FIRST_SECONDS = 5.0
_RETRY_SECONDS = 60.0
_NOTICE_SECONDS = 3.0
_MOST_IDLE = 8
_IDLE_SECONDS = 20.0
_BLOCK = 1 << 18

# TCP notices within half a minute that the other end or the network is gone.
_KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))

LOST = (OSError, http.client.HTTPException)
"""What is raised when a connection cannot be opened, or is lost."""

Body = bytes | Callable[[], IO[bytes]]


@dataclass(frozen=True)
class Request:
    """One request. `body` is bytes, or a function that opens a file, because a retry sends it from the beginning."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    size: int = 0
    """The length of a body that is a file."""
    seconds: float = _ANSWER_SECONDS
    """How long the server may be silent."""
    patience: float | None = None
    """How long a request that fails is repeated; by default longer if the server has answered before."""

    @property
    def target(self) -> str:
        """Path and query as sent."""
        given = {name: value for name, value in self.query.items() if value is not None}
        return self.path + (f"?{urlencode(given)}" if given else "")


@dataclass(frozen=True)
class Response:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The answer as data."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ServiceException("the server sent an answer that is not JSON", cause=str(error)) from None


class Part:
    """The next `size` bytes of a file. A file that became shorter is an error: the server would wait for the rest."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._rest = size

    def read(self, size: int = -1) -> bytes:
        """The next bytes; empty at the end."""
        block = self._file.read(self._rest if size < 0 else min(size, self._rest))
        if not block and self._rest:
            raise UserErrorException(
                f"{getattr(self._file, 'name', 'a file')} became shorter while it was sent",
                hint="Send it again when no program writes it.",
            )
        self._rest -= len(block)
        return block


class Stream:
    """An answer that is read in parts. It owns its connection until it is closed."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self.status = answer.status
        self.headers = _lower(answer)

    def read(self, size: int = _BLOCK) -> bytes:
        """The next bytes; empty at the end. Raises if the connection is lost before that."""
        block = self._answer.read(size)
        if not block and self._answer.length:
            raise http.client.IncompleteRead(b"", self._answer.length)
        return block

    def readline(self) -> bytes:
        """The next line; empty at the end."""
        return self._answer.readline()

    def close(self) -> None:
        """Closes the connection. A thread that waits in `read` returns or raises."""
        with contextlib.suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class HttpClient:
    """Requests to one server as one user; safe to share between threads and across a fork."""

    def __init__(self, address: ServerAddress, token: str) -> None:
        check_encrypted(address)
        self.address = address
        self._token = token
        self._pool = _Pool()
        self._proxy = find_proxy(address)
        self._has_answered = False

    def request(self, request: Request, accept: Callable[[int], bool] = lambda status: False) -> Response:
        """The answer. An error of the server is raised as the class it names, unless `accept` takes its status."""
        sent = self._with_key(request)
        return self._repeat(lambda: self._exchange(sent), accept, request.patience)

    def call(self, method: str, path: str, data: Any = None, **options: Any) -> Any:
        """The data in the answer to a request with JSON."""
        body = None if data is None else json.dumps(data).encode()
        headers = {"Accept": "application/json"} | ({} if body is None else {"Content-Type": "application/json"})
        return self.request(Request(method, path, headers=headers, body=body, **options)).json()

    def open(self, request: Request, accept: Callable[[int], bool] = lambda status: False) -> Stream:
        """The answer as a stream; only its beginning is retried."""
        sent = self._with_key(request)
        stream: list[Stream] = []

        def begin() -> Response:
            connection, answer = self._begin(sent)
            if answer.status < 400 or accept(answer.status):
                stream.append(Stream(connection, answer))
                return Response(answer.status, _lower(answer), b"")
            return self._finish(connection, answer)

        self._repeat(begin, accept, request.patience)
        return stream[0]

    def close(self) -> None:
        """Closes idle connections; the next request opens another."""
        self._pool_of_process().clear()

    def _with_key(self, request: Request) -> Request:
        """The request as it is sent, with a key if it changes something: the same for every attempt."""
        headers = dict(request.headers)
        if request.method not in ("GET", "HEAD"):
            headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        headers.setdefault("User-Agent", f"trainmaster/{__version__}")
        if self._token:
            headers.setdefault("Authorization", f"Bearer {self._token}")
        return replace(request, path=self.address.prefix + request.path, headers=headers)

    def _repeat(
        self, attempt: Callable[[], Response], accept: Callable[[int], bool], patience: float | None
    ) -> Response:
        backoff = Backoff(first=0.1, longest=5.0)
        start = time.monotonic()
        has_noticed = False
        while True:
            try:
                answer = attempt()
            except ssl.SSLCertVerificationError as error:
                raise self._explain_certificate(error) from None
            except LOST as lost:
                problem: TrainmasterError = self._explain_loss(lost)
                pause = backoff.next_pause()
            else:
                self._has_answered = True
                check_version(self.address, answer.headers)
                if answer.status < 400 or accept(answer.status):
                    return answer
                problem = self._explain_refusal(answer)
                again = retry_pause(answer.status, answer.headers)
                if again is None:
                    raise problem
                pause = max(again, backoff.next_pause())
            waited = time.monotonic() - start
            limit = _RETRY_SECONDS if self._has_answered else _FIRST_SECONDS
            if waited + pause > (limit if patience is None else patience):
                raise problem
            if patience is None and waited > _NOTICE_SECONDS and not has_noticed:
                notify(f"{self.address} does not answer; trying again. {problem.cause}".rstrip())
                has_noticed = True
            time.sleep(pause)

    def _exchange(self, request: Request) -> Response:
        return self._finish(*self._begin(request))

    def _begin(self, request: Request) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends the request and reads the beginning of the answer."""
        kept = self._pool_of_process().take()
        if kept is not None:
            # The server may just have closed it. That is no failure: the request then gets a new one at once.
            with contextlib.suppress(*LOST):
                return kept, self._send(kept, request)
        connection = self._connect()
        return connection, self._send(connection, request)

    def _send(self, connection: http.client.HTTPConnection, request: Request) -> http.client.HTTPResponse:
        try:
            connection.sock.settimeout(request.seconds)
            self._write(connection, request)
            return connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _write(self, connection: http.client.HTTPConnection, request: Request) -> None:
        target, headers = request.target, dict(request.headers)
        if self._proxy is not None and self.address.scheme == "http":
            target = f"http://{self.address.authority}{target}"
            headers |= self._proxy.headers
        # A server that refuses a request need not read its body: it answers and closes. The answer says why.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if not callable(request.body):
                connection.request(request.method, target, request.body, headers)
                return
            with request.body() as file:
                headers["Content-Length"] = str(request.size)
                connection.request(request.method, target, Part(file, request.size), headers)

    def _finish(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Response:
        """Reads the rest of the answer and keeps the connection."""
        try:
            body = answer.read()
        except BaseException:
            connection.close()
            raise
        response = Response(answer.status, _lower(answer), body)
        if answer.will_close:
            connection.close()
        else:
            self._pool_of_process().put(connection)
        return response

    def _connect(self) -> http.client.HTTPConnection:
        connection = self._make_connection()
        connection.connect()
        _prepare(connection.sock)
        return connection

    def _make_connection(self) -> http.client.HTTPConnection:
        place = (self._proxy.host, self._proxy.port) if self._proxy else (self.address.host, self.address.port)
        if self.address.scheme == "http":
            return http.client.HTTPConnection(*place, timeout=_CONNECT_SECONDS, blocksize=_BLOCK)
        connection = http.client.HTTPSConnection(
            *place, timeout=_CONNECT_SECONDS, context=tls_context(), blocksize=_BLOCK
        )
        if self._proxy is not None:
            connection.set_tunnel(self.address.host, self.address.port, headers=dict(self._proxy.headers))
        return connection

    def _pool_of_process(self) -> _Pool:
        # A forked child must use neither its parent's connections nor its lock, which may be held.
        if self._pool.process != os.getpid():
            self._pool = _Pool()
        return self._pool

    def _explain_loss(self, lost: Exception) -> UnavailableException:
        through = f" through the proxy {self._proxy.host}:{self._proxy.port}" if self._proxy else ""
        return UnavailableException(
            f"the server {self.address} cannot be reached{through}",
            cause=f"{type(lost).__name__}: {lost}" if str(lost) else type(lost).__name__,
            hint="Check the address, the network, and whether the server runs. The request may be repeated safely.",
        )

    def _explain_certificate(self, error: ssl.SSLCertVerificationError) -> ServiceException:
        return ServiceException(
            f"the certificate of {self.address} is not trusted",
            cause=error.verify_message or str(error),
            hint=f"If the server has a certificate of your own authority, set {CA_FILE} to that authority's file.",
        )

    def _explain_refusal(self, answer: Response) -> TrainmasterError:
        error = error_of(answer.status, answer.headers, answer.body)
        if answer.status == 401 and isinstance(error, AuthenticationException):
            return AuthenticationException(
                error.headline, cause=error.cause, hint=f"Sign in with 'trainmaster login {self.address}'."
            )
        return error


class _Pool:
    """The idle connections of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._guard = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        # Without the lock: nobody else has the pool then, and in a forked child the lock may be held for ever.
        weakref.finalize(self, _close_all, self._idle)

    def take(self) -> http.client.HTTPConnection | None:
        """A connection that the server has not closed, or None."""
        while True:
            with self._guard:
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            if time.monotonic() - since < _IDLE_SECONDS and _is_quiet(connection.sock):
                return connection
            connection.close()

    def put(self, connection: http.client.HTTPConnection) -> None:
        """Keeps a connection for the next request."""
        with self._guard:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def clear(self) -> None:
        """Closes all of them."""
        with self._guard:
            idle, self._idle[:] = list(self._idle), []
        _close_all(idle)


def _close_all(idle: list[tuple[float, http.client.HTTPConnection]]) -> None:
    for _, connection in idle:
        connection.close()


def tls_context() -> ssl.SSLContext:
    """Trusts the authorities of the system and the one in `TRAINMASTER_CA_FILE`."""
    file = os.environ.get(CA_FILE, "")
    context = _contexts.get(file)
    if context is None:
        context = ssl.create_default_context()
        if file:
            try:
                context.load_verify_locations(cafile=file)
            except (OSError, ssl.SSLError) as error:
                raise UserErrorException(f"{CA_FILE}: {file} cannot be used", cause=str(error)) from None
        _contexts[file] = context
    return context


_contexts: dict[str, ssl.SSLContext] = {}


def join_path(*parts: str) -> str:
    """A path in an address. Each part is one segment, whatever characters it has.

    >>> join_path("runs", "a/b", "c d")
    '/runs/a%2Fb/c%20d'
    """
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def read_blocks(stream: Stream) -> Iterator[bytes]:
    """The blocks of a stream. An answer that ends before its length is an error."""
    while block := stream.read():
        yield block


def _prepare(sock: Any) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        with contextlib.suppress(OSError, AttributeError):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _is_quiet(sock: socket.socket | None) -> bool:
    """Whether nothing has arrived on an idle connection. A closed connection is readable."""
    import select

    if sock is None:
        return False
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return not poll.poll(0)


def _lower(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


__all__ = ["CA_FILE", "LOST", "HttpClient", "Proxy", "Request", "Response", "Stream", "join_path", "read_blocks"]
