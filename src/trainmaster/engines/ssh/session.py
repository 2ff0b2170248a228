"""A connection to a host: an ssh process, and at its other end our own program, which it brings along."""

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

from trainmaster.engines.ssh import clocks
from trainmaster.engines.ssh.host import CONNECT_SECONDS, DEFAULT_LOST_AFTER, SshHost, command
from trainmaster.engines.ssh.program import program
from trainmaster.engines.ssh.ssh_errors import explained, never_began
from trainmaster.engines.ssh.under_way import UnderWay
from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.helper.connection import GREETING, PIECE

_MOST_SAID = 8 * 1024


@dataclass(frozen=True)
class HostFacts:
    """What a host is and has, as it says itself."""

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
    """How many seconds its clock is behind ours, where that is more than a trifle; less than 0 if it is ahead."""
    libc: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


class Session:
    """An open connection. Everything that goes wrong with it is a ComputeTargetException."""

    def __init__(self, host: SshHost, process: asyncio.subprocess.Process, pipes: asyncio.SubprocessTransport) -> None:
        self.host = host
        self._process = process
        self._pipes = pipes
        assert process.stdin is not None and process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout
        self._said = bytearray()
        self._listener = asyncio.create_task(self._listen())
        self._turn = asyncio.Lock()
        self.under_way = UnderWay()
        """What is being sent to the host; several connections may have one in common."""

    @classmethod
    async def open(
        cls,
        host: SshHost,
        root: str,
        silence: float = DEFAULT_LOST_AFTER,
        variables: Mapping[str, str] | None = None,
        make: bool = True,
    ) -> tuple[Session, HostFacts]:
        """Connects, and hears what the host is. `root` is the folder of the workspace there; `make` it if need be."""
        loop = asyncio.get_running_loop()
        # What asyncio.create_subprocess_exec does; but that keeps to itself what closes the pipes.
        pipes, streams = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(16 * PIECE, loop),
            *command(host, silence),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # A key of the terminal that ends the program in the foreground must not end this.
            start_new_session=True,
            env={**os.environ, **(variables or {})},
        )
        session = cls(host, asyncio.subprocess.Process(pipes, streams, loop), pipes)
        try:
            async with asyncio.timeout(min(max(silence, 5.0), 2 * CONNECT_SECONDS)):
                await session._greet()
                asked = time.time()
                found = await session.call({"op": "hello", "root": root, "make": make})
                behind = clocks.difference(asked, time.time(), found["now"])
        except TimeoutError:
            await session.close()
            raise explained(host, None, "Connection timed out") from None
        except BaseException:
            await session.close()
            raise
        return session, _facts(found, behind)

    async def _greet(self) -> None:
        source = program()
        await self._put(b"%08d" % len(source) + source)
        heard = b""
        while not heard.endswith(GREETING):
            line = await self._output.readline()
            heard = (heard + line)[-4096:]
            if not line:
                await self._ended()
                raise never_began(self.host, self._process.returncode, self._complaint, heard.decode(errors="replace"))

    async def call(self, header: Mapping[str, Any], payload: bytes = b"") -> dict[str, Any]:
        """The answer to a request."""
        async with self._turn:
            await self.send(header, payload)
            answer, _ = await self.receive()
        return self._checked(answer)

    async def call_for_bytes(self, header: Mapping[str, Any], payload: bytes) -> bytes:
        """The bytes that come with the answer to a request."""
        async with self._turn:
            await self.send(header, payload)
            answer, found = await self.receive()
        self._checked(answer)
        return found

    def _checked(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            raise ComputeTargetException(
                f"host {self.host.shown} could not keep what was brought to it",
                cause=str(answer["error"]),
                hint=f"Has its disk room, and may {self.host.folder} be written there?",
            )
        return answer

    async def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """A frame, without waiting for an answer."""
        if payload:
            header = {**header, "size": len(payload)}
        await self._put(json.dumps(header).encode() + b"\n" + payload)

    async def send_file(
        self, header: Mapping[str, Any], path: Path, size: int, sent: Callable[[int], None] = lambda count: None
    ) -> None:
        """A frame with the contents of a file; one that became shorter breaks the connection off.

        `sent` hears of each piece, by its size.
        """
        async with self._turn:
            await self._put(json.dumps({**header, "size": size}).encode() + b"\n")
            with open(path, "rb") as file:
                rest = size
                while rest:
                    piece = file.read(min(rest, PIECE))
                    if not piece:
                        raise ComputeTargetException(f"{path} became shorter while it was sent")
                    await self._put(piece)
                    rest -= len(piece)
                    sent(len(piece))

    async def _put(self, data: bytes) -> None:
        try:
            self._input.write(data)
            await self._input.drain()
        except (ConnectionError, RuntimeError):
            await self._fail()

    async def receive(self) -> tuple[dict[str, Any], bytes]:
        """The next frame."""
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

    async def _fail(self) -> None:
        """Raises why the connection is not there any more."""
        await self._ended()
        raise explained(self.host, self._process.returncode, self._complaint)

    async def _ended(self) -> None:
        """Waits until ssh has said its last word."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await self._process.wait()
                await self._listener

    @property
    def _complaint(self) -> str:
        return self._said.decode(errors="replace")

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._said += data
            del self._said[:-_MOST_SAID]

    async def close(self) -> None:
        """Ends the connection; agents go on."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        # What ssh started may outlive it and hold them open: then nobody would ever hear that it has ended.
        for number in range(3):
            if (pipe := self._pipes.get_pipe_transport(number)) is not None:
                pipe.close()
        await self._process.wait()
        self._pipes.close()
        self._listener.cancel()
        await asyncio.gather(self._listener, return_exceptions=True)


def _facts(found: Mapping[str, Any], behind: float) -> HostFacts:
    return HostFacts(
        root=found["root"],
        python=found["python"],
        version=tuple(found["version"]),
        machine=found["machine"],
        host=found["host"],
        address=found["address"],
        cpus=found["cpus"],
        memory=found["memory"],
        gpus=found["gpus"],
        free=found["free"],
        user=found["user"],
        behind=behind,
        libc=tuple(found["libc"]),
        variables=found["variables"],
    )
