"""A connection to a host: a channel with our helper, which is sent over it first, at the other end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmaster.engines.remote import clocks
from trainmaster.engines.remote.channel import Channel, Host, Unreachable
from trainmaster.engines.remote.program import program
from trainmaster.engines.remote.transfers import Transfers
from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.helper import messages
from trainmaster.job.helper.connection import GREETING, PIECE
from trainmaster.shared.tasks import start_task

DEFAULT_SILENCE = 60.0
CONNECT_SECONDS = 15


@dataclass(frozen=True)
class HostFacts:
    """What a host reports about itself."""

    root: str
    python: str
    version: tuple[int, ...]
    machine: str
    host: str
    address: str
    cpus: int
    memory: int
    gpus: int
    free: int
    user: int
    behind: float = 0.0
    """Seconds by which its clock is behind ours: negative if it is ahead, 0 for small differences."""
    libc: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


class Connection:
    """An open connection. Every failure of it is a ComputeTargetException."""

    facts: HostFacts

    def __init__(self, host: Host, channel: Channel) -> None:
        self.host = host
        self._channel = channel
        self._turn = asyncio.Lock()
        self.transfers = Transfers()
        """What is being sent to the host; connections to one host may share it."""

    @classmethod
    async def open(cls, host: Host, root: str, silence: float = DEFAULT_SILENCE, make: bool = True) -> Connection:
        """Connects and learns the host's facts. `root` is the workspace's folder there; `make` creates it."""
        connection = cls(host, await host.open_channel(silence))
        try:
            async with asyncio.timeout(min(max(silence, 5.0), 2 * CONNECT_SECONDS)):
                await connection._start_helper()
                sent_at = time.time()
                answer = await connection.call({"op": "hello", "root": root, "make": make, "cache": host.cache})
                behind = clocks.difference(sent_at, time.time(), answer["now"])
        except TimeoutError:
            await connection.close()
            raise host.explain_loss(None, "Connection timed out") from None
        except BaseException:
            await connection.close()
            raise
        connection.facts = _read_facts(answer, behind)
        return connection

    async def _start_helper(self) -> None:
        source = program()
        await self._write(b"%08d" % len(source) + source)
        output = b""
        while not output.endswith(GREETING):
            line = await self._channel.output.readline()
            output = (output + line)[-4096:]
            if not line:
                await self._wait_for_end()
                code, stderr = self._channel.returncode, self._channel.error_text
                raise self.host.explain_start(code, stderr, output.decode(errors="replace"))

    async def call(self, header: Mapping[str, Any], payload: bytes = b"") -> dict[str, Any]:
        """Sends a request and returns the answer."""
        async with self._turn:
            await self.send(header, payload)
            answer, _ = await self.receive()
        self._check(answer)
        return answer

    async def call_for_bytes(self, header: Mapping[str, Any], payload: bytes) -> bytes:
        """Sends a request and returns the bytes of the answer."""
        async with self._turn:
            await self.send(header, payload)
            answer, data = await self.receive()
        self._check(answer)
        return data

    def _check(self, answer: Mapping[str, Any]) -> None:
        messages.check(answer, self._error_of)

    def _error_of(self, problem: str) -> ComputeTargetException:
        cache = self.host.cache
        folder = cache if cache and cache in problem else self.host.folder
        return ComputeTargetException(
            f"{self.host.title} could not store what was sent to it",
            cause=problem,
            hint=f"Check that its disk is not full and that {folder} can be written there.",
        )

    async def check_folder(self, parameter: str, hint: str) -> None:
        """Raises an error if the host's folder cannot be written to. Creates nothing."""
        try:
            await self.call({"op": "writable", "path": self.host.folder})
        except ComputeTargetException as error:
            raise ComputeTargetException(
                f"{parameter} {self.host.folder} cannot be written to at {self.host.title}",
                cause=error.cause,
                hint=hint,
            ) from error

    async def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Sends a frame and does not wait for an answer."""
        if payload:
            header = {**header, "size": len(payload)}
        await self._write(messages.encode(header) + b"\n" + payload)

    async def send_file(
        self, header: Mapping[str, Any], path: Path, size: int, on_sent: Callable[[int], None] = lambda count: None
    ) -> None:
        """Sends a file as one frame. `on_sent` is called with the size of each piece.

        If the file has become shorter than `size`, the connection cannot be used any more.
        """
        async with self._turn:
            await self._write(json.dumps({**header, "size": size}).encode() + b"\n")
            with open(path, "rb") as file:
                rest = size
                while rest:
                    piece = file.read(min(rest, PIECE))
                    if not piece:
                        raise ComputeTargetException(f"{path} became shorter while it was sent")
                    await self._write(piece)
                    rest -= len(piece)
                    on_sent(len(piece))

    async def _write(self, data: bytes) -> None:
        try:
            await self._channel.write(data)
        except ConnectionError:
            await self._fail()

    async def receive(self) -> tuple[dict[str, Any], bytes]:
        """Returns the next frame."""
        line = await self._channel.output.readline()
        if not line.endswith(b"\n"):
            await self._fail()
        header: dict[str, Any] = json.loads(line)
        size = header.get("size", 0)
        try:
            return header, await self._channel.output.readexactly(size) if size else b""
        except asyncio.IncompleteReadError:
            await self._fail()
            raise

    async def receive_within(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Returns the next frame; raises Unreachable if none arrives in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.receive()
        except TimeoutError:
            raise Unreachable(f"{self.host.title} no longer answers") from None

    def start_pings(self, seconds: float) -> asyncio.Task[None]:
        """Sends a ping at this interval: without pings the helper ends. The caller cancels the task."""

        async def ping() -> None:
            while True:
                await asyncio.sleep(seconds)
                # The reader of the connection raises the error.
                with contextlib.suppress(ComputeTargetException):
                    await self.send({"op": "ping"})

        return start_task(f"pings to {self.host.label}", ping)

    async def _fail(self) -> None:
        """Raises the reason why the connection was lost."""
        await self._wait_for_end()
        raise self.host.explain_loss(self._channel.returncode, self._channel.error_text)

    async def _wait_for_end(self) -> None:
        """Waits until the other end is gone and all its error output has been read."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await self._channel.wait()

    async def close(self) -> None:
        """Ends the connection; agents keep running."""
        await self._channel.close()


def _read_facts(answer: Mapping[str, Any], behind: float) -> HostFacts:
    return HostFacts(
        root=answer["root"],
        python=answer["python"],
        version=tuple(answer["version"]),
        machine=answer["machine"],
        host=answer["host"],
        address=answer["address"],
        cpus=answer["cpus"],
        memory=answer["memory"],
        gpus=answer["gpus"],
        free=answer["free"],
        user=answer["user"],
        behind=behind,
        libc=tuple(answer["libc"]),
        variables=answer["variables"],
    )
