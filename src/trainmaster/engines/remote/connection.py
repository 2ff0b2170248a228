"""A connection to a host: an ssh process here and our helper, which is sent over it first, at the other end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmaster.engines.remote import clocks
from trainmaster.engines.remote.host import CONNECT_SECONDS, DEFAULT_SILENCE, SshHost, command
from trainmaster.engines.remote.program import program
from trainmaster.engines.remote.ssh_errors import Unreachable, explain, explain_start
from trainmaster.engines.remote.transfers import Transfers
from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.helper import messages
from trainmaster.job.helper.connection import GREETING, PIECE
from trainmaster.shared.tasks import start_task

_STDERR_BYTES = 8 * 1024


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

    def __init__(self, host: SshHost, process: asyncio.subprocess.Process, pipes: asyncio.SubprocessTransport) -> None:
        self.host = host
        self._process = process
        self._pipes = pipes
        assert process.stdin is not None and process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout
        self._stderr = bytearray()
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._turn = asyncio.Lock()
        self.transfers = Transfers()
        """What is being sent to the host; connections to one host may share it."""

    @classmethod
    async def open(
        cls,
        host: SshHost,
        root: str,
        silence: float = DEFAULT_SILENCE,
        variables: Mapping[str, str] | None = None,
        make: bool = True,
    ) -> Connection:
        """Connects and learns the host's facts. `root` is the workspace's folder there; `make` creates it."""
        loop = asyncio.get_running_loop()
        # The same as asyncio.create_subprocess_exec, which does not give access to the transport that closes the pipes.
        pipes, streams = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(16 * PIECE, loop),
            *command(host, silence),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal must not reach ssh.
            start_new_session=True,
            env={**os.environ, **(variables or {})},
        )
        connection = cls(host, asyncio.subprocess.Process(pipes, streams, loop), pipes)
        try:
            async with asyncio.timeout(min(max(silence, 5.0), 2 * CONNECT_SECONDS)):
                await connection._start_helper()
                sent_at = time.time()
                answer = await connection.call({"op": "hello", "root": root, "make": make})
                behind = clocks.difference(sent_at, time.time(), answer["now"])
        except TimeoutError:
            await connection.close()
            raise explain(host, None, "Connection timed out") from None
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
            line = await self._output.readline()
            output = (output + line)[-4096:]
            if not line:
                await self._wait_for_end()
                raise explain_start(
                    self.host, self._process.returncode, self._error_text, output.decode(errors="replace")
                )

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
        return ComputeTargetException(
            f"host {self.host.label} could not store what was sent to it",
            cause=problem,
            hint=f"Check that its disk is not full and that {self.host.folder} can be written there.",
        )

    async def check_folder(self, parameter: str, hint: str) -> None:
        """Raises an error if the host's folder cannot be written to. Creates nothing."""
        try:
            await self.call({"op": "writable", "path": self.host.folder})
        except ComputeTargetException as error:
            raise ComputeTargetException(
                f"{parameter} {self.host.folder} cannot be written to at host {self.host.label}",
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
            self._input.write(data)
            await self._input.drain()
        except (ConnectionError, RuntimeError):
            await self._fail()

    async def receive(self) -> tuple[dict[str, Any], bytes]:
        """Returns the next frame."""
        line = await self._output.readline()
        if not line.endswith(b"\n"):
            await self._fail()
        header: dict[str, Any] = json.loads(line)
        size = header.get("size", 0)
        try:
            return header, await self._output.readexactly(size) if size else b""
        except asyncio.IncompleteReadError:
            await self._fail()
            raise

    async def receive_within(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Returns the next frame; raises Unreachable if none arrives in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.receive()
        except TimeoutError:
            raise Unreachable(f"host {self.host.label} no longer answers") from None

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
        raise explain(self.host, self._process.returncode, self._error_text)

    async def _wait_for_end(self) -> None:
        """Waits until ssh has ended and all its error output has been read."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await self._process.wait()
                await self._stderr_reader

    @property
    def _error_text(self) -> str:
        return self._stderr.decode(errors="replace")

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES]

    async def close(self) -> None:
        """Ends the connection; agents keep running."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        # A process that ssh started may outlive it and hold the pipes open; asyncio would then wait for them forever.
        for number in range(3):
            if (pipe := self._pipes.get_pipe_transport(number)) is not None:
                pipe.close()
        await self._process.wait()
        self._pipes.close()
        self._stderr_reader.cancel()
        await asyncio.gather(self._stderr_reader, return_exceptions=True)


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
