"""A small HTTPS server whose answers the test writes itself, for what a real API server does only on its bad days."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from tests.certificates import write_certificate
from trainmaster.engines.kubernetes.access import Access
from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.kubeconfig import Cluster, Pem, User


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    connection: int
    """The number of the connection that it came over."""


class Exchange:
    """One request, and the way to answer it."""

    def __init__(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer

    async def answer(self, status: int, body: object = None, **headers: str) -> None:
        """A whole answer, as JSON."""
        data = json.dumps(body if body is not None else {}).encode()
        lines = [f"HTTP/1.1 {status} Answer", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode() + data)

    async def begin(self) -> None:
        """The headers of an answer in chunks."""
        await self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, *objects: object) -> None:
        """Lines of a watch; none ends the answer."""
        data = b"".join(json.dumps(each).encode() + b"\n" for each in objects)
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Drops the connection."""
        self.writer.transport.abort()


Script = Callable[[Exchange], Awaitable[None]]


class ScriptedServer:
    """A server on a free port of 127.0.0.1."""

    def __init__(self, folder: Path, script: Script, client_authority: Path | None = None) -> None:
        self.key, self.certificate = write_certificate(folder)
        self.script = script
        self.requests: list[Request] = []
        self.connections = 0
        self.open_at_once = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._port = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, self.key)
        if client_authority:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(client_authority)

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        """Listens; a second time on the same port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, ssl=self._context)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._open.add(writer)
        self.open_at_once = max(self.open_at_once, len(self._open))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await _read_request(reader, number)
                    self.requests.append(request)
                    await self.script(Exchange(request, reader, writer))
        finally:
            self._open.discard(writer)
            writer.transport.abort()


def status_body(code, message="no", **details):
    """An error as an API server writes it."""
    return {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": details}


@contextlib.asynccontextmanager
async def client_of(folder, script, user=None, cluster=None, **options):
    """A server with that script, and a client of it in the namespace train."""
    server = ScriptedServer(folder, script, options.pop("client_authority", None))
    async with server.listen():
        trusted = Cluster(server.address, Pem(file=server.certificate), **(cluster or {}))
        api = Api(Access(trusted, user or User(), "train"), **options)
        try:
            yield server, api
        finally:
            await api.close()


async def _read_request(reader: asyncio.StreamReader, number: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body, number)
