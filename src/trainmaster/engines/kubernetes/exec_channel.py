"""A program in a container: its input, output and exit status over one WebSocket (v4 and v5.channel.k8s.io).

Every message begins with a byte that says which stream it belongs to. Nothing is buffered without a limit: if the
program does not read its input, `write` waits, and if nobody reads `output`, the server is not read either.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from urllib.parse import quote

from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.api_errors import missing_package
from trainmaster.engines.kubernetes.connection import Connection, Response
from trainmaster.job.errors import ComputeTargetException

try:
    from websockets.frames import Frame, Opcode
    from websockets.protocol import CLIENT, OPEN, Protocol
except ImportError as error:
    raise missing_package(error) from error

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
# Of RFC 6455, to prove that the server understands WebSockets.
_HANDSHAKE = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_INPUT, _OUTPUT, _ERRORS, _STATUS = range(4)
_PIECE = 128 * 1024
_WRITE_BUFFER = 512 * 1024
_OUTPUT_LIMIT = 4 * 1024 * 1024
_ERROR_BYTES = 8 * 1024
_STATUS_BYTES = 64 * 1024
_MESSAGE_BYTES = 32 * 1024 * 1024
# So much unread input may fill the buffers of the way, and then the server stops reading, also our pings.
_SMALL_INPUT = 64 * 1024
_BUSY_FACTOR = 5
DEFAULT_SILENCE = 60.0
COULD_NOT_START = 126
"""The exit code of a program that the container could not start."""


async def open_exec(
    api: Api, pod: str, argv: Sequence[str], container: str = "", silence: float = DEFAULT_SILENCE
) -> ExecChannel:
    """Starts a program in a running pod. A server that is silent for `silence` seconds counts as lost.

    Raises ApiError if the server refuses, Unreachable if it does not answer.
    """
    path = f"{api.pods}/{quote(pod, safe='')}/exec"
    query = {"command": list(argv), "container": container, "stdin": "true", "stdout": "true", "stderr": "true"}
    key = base64.b64encode(os.urandom(16))
    headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key.decode()),
        ("Sec-WebSocket-Protocol", ", ".join(_PROTOCOLS)),
    ]
    async with contextlib.AsyncExitStack() as stack:
        connection, response = await stack.enter_async_context(api.own_connection("GET", path, query, headers))
        _check_handshake(api.access.server, key, response)
        return ExecChannel(connection, response.rest, silence, stack.pop_all())


def _check_handshake(server: str, key: bytes, response: Response) -> None:
    expected = base64.b64encode(hashlib.sha1(key + _HANDSHAKE).digest()).decode()
    accepted = response.headers.get("sec-websocket-accept") == expected
    if response.status != 101 or not accepted or response.headers.get("sec-websocket-protocol") not in _PROTOCOLS:
        raise ComputeTargetException(
            f"programs cannot be run in pods through {server}",
            cause=f"It answered {response.status} to a WebSocket of {' or '.join(_PROTOCOLS)}.",
            hint="A proxy on the way may not let WebSockets pass; Kubernetes 1.20 or newer is needed.",
        )


class ExecChannel:
    """A `Channel` to a program in a container."""

    def __init__(self, connection: Connection, rest: bytes, silence: float, stack: contextlib.AsyncExitStack) -> None:
        self.output = asyncio.StreamReader(limit=_OUTPUT_LIMIT)
        self.returncode: int | None = None
        self._gate = _Gate()
        self.output.set_transport(self._gate)
        self._errors = bytearray()
        self._loss = ""
        self._status = bytearray()
        self._channel: int | None = None
        self._connection = connection
        self._protocol = Protocol(CLIENT, state=OPEN, max_size=_MESSAGE_BYTES)
        self._stack = stack
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._unanswered = 0
        connection.writer.transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        self._tasks = [asyncio.create_task(self._read(rest)), asyncio.create_task(self._ping(silence))]

    @property
    def error_text(self) -> str:
        """The end of the program's error output, and why the connection was lost."""
        printed = self._errors.decode(errors="replace")
        return "\n".join(text for text in (printed.rstrip("\n"), self._loss) if text) if self._loss else printed

    async def write(self, data: bytes) -> None:
        """Sends bytes to the program and waits while its input is full. Raises ConnectionError if it is gone."""
        view = memoryview(data)
        for begin in range(0, len(view), _PIECE):
            self._check_open()
            piece = view[begin : begin + _PIECE]
            self._unanswered += len(piece)
            self._protocol.send_binary(bytes((_INPUT,)) + piece)
            self._flush()
            await self._connection.writer.drain()
        self._check_open()

    def _check_open(self) -> None:
        if self._protocol.state is not OPEN or self._connection.writer.is_closing():
            raise ConnectionResetError(self._loss or "the program has ended")

    async def wait(self) -> None:
        """Returns when the program has ended, or the connection is lost."""
        await self._ended.wait()

    async def close(self) -> None:
        """Ends the connection at once, and so the program's input."""
        if not self._ended.is_set():
            self._loss = self._loss or "the connection was closed here"
            self._protocol.send_close(1000)
            self._flush()
        await self._stack.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end()

    async def _read(self, data: bytes) -> None:
        reader = self._connection.reader
        try:
            while True:
                self._receive(data)
                if self._protocol.state is not OPEN:
                    break
                await self._gate.opened.wait()
                # The time in which nobody listened does not count as silence.
                self._heard_at = self._loop.time()
                data = await reader.read(_PIECE)
                if not data:
                    break
        except OSError as error:
            self._lose(str(error) or type(error).__name__)
        if self.returncode is None:
            # Also without a status: the node's kubelet, or what it talks to, was restarted.
            self._lose("the API server closed the connection")
        self._end()

    def _receive(self, data: bytes) -> None:
        if not data:
            return
        self._unanswered = 0
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            assert isinstance(event, Frame)
            if event.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
                self._take_part(event)
        self._flush()
        if self._protocol.parser_exc is not None:
            raise ConnectionError(f"the server broke the rules of WebSockets: {self._protocol.parser_exc}")

    def _take_part(self, frame: Frame) -> None:
        """Takes a message, or a part of one; only the first part names the stream."""
        data: bytes | bytearray | memoryview = frame.data
        if frame.opcode is not Opcode.CONT:
            self._channel = data[0] if data else None
            data = memoryview(data)[1:]
        if not data:
            return
        if self._channel == _OUTPUT:
            self.output.feed_data(data)
        elif self._channel == _ERRORS:
            self._errors += data
            del self._errors[:-_ERROR_BYTES]
        elif self._channel == _STATUS:
            self._status += data
            del self._status[_STATUS_BYTES:]
            self._read_status()

    def _read_status(self) -> None:
        code, message = read_exit(bytes(self._status))
        self.returncode = code
        if code == COULD_NOT_START and message:
            self._errors += message.encode()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._connection.writer.write(data)

    async def _ping(self, silence: float) -> None:
        """Asks for a sign of life again and again; without one the connection is lost."""
        while not self._ended.is_set():
            await asyncio.sleep(silence / 4)
            limit = silence * (_BUSY_FACTOR if self._unanswered > _SMALL_INPUT else 1)
            if self._gate.opened.is_set() and self._loop.time() - self._heard_at > limit:
                self._lose(f"the API server did not answer for {limit:g} seconds")
                # The reader ends with it.
                self._connection.abort()
                return
            if self._protocol.state is OPEN:
                self._protocol.send_ping(b"")
                self._flush()

    def _lose(self, reason: str) -> None:
        self._loss = self._loss or f"The connection to the pod was lost: {reason}."

    def _end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self.output.feed_eof()
            self._connection.abort()


class _Gate(asyncio.ReadTransport):
    """Tells the reader of the connection to pause while there is much output that nobody has read."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = asyncio.Event()
        self.opened.set()

    def pause_reading(self) -> None:
        self.opened.clear()

    def resume_reading(self) -> None:
        self.opened.set()


def read_exit(status: bytes) -> tuple[int | None, str]:
    """The exit code in the status that ends a program, and a message if it could not be started.

    >>> read_exit(b'{"status": "Success"}')
    (0, '')
    >>> causes = '{"causes": [{"reason": "ExitCode", "message": "7"}]}'
    >>> read_exit(b'{"status": "Failure", "reason": "NonZeroExitCode", "details": %s}' % causes.encode())
    (7, '')
    """
    try:
        answer = json.loads(status)
    except ValueError:
        # Not all of it has arrived.
        return None, ""
    if not isinstance(answer, dict):
        return COULD_NOT_START, str(answer)
    if answer.get("status") == "Success":
        return 0, ""
    if answer.get("reason") == "NonZeroExitCode":
        for cause in (answer.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode" and str(cause.get("message")).isdecimal():
                return int(cause["message"]), ""
    return COULD_NOT_START, str(answer.get("message") or "the program could not be started")
