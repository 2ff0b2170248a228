"""A program on a host, through an ssh process."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence

from trainmaster.job.helper.connection import PIECE

_STDERR_BYTES = 8 * 1024


class SshChannel:
    """A running ssh."""

    def __init__(self, process: asyncio.subprocess.Process, pipes: asyncio.SubprocessTransport) -> None:
        self._process = process
        self._pipes = pipes
        assert process.stdin is not None and process.stdout is not None
        self._input = process.stdin
        self.output = process.stdout
        self._stderr = bytearray()
        self._stderr_reader = asyncio.create_task(self._read_stderr())

    @classmethod
    async def open(cls, command: Sequence[str], variables: Mapping[str, str]) -> SshChannel:
        """Starts ssh with this command line; `variables` are added to those of this process."""
        loop = asyncio.get_running_loop()
        # The same as asyncio.create_subprocess_exec, which does not give access to the transport that closes the pipes.
        pipes, streams = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(16 * PIECE, loop),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal must not reach ssh.
            start_new_session=True,
            env={**os.environ, **variables},
        )
        return cls(asyncio.subprocess.Process(pipes, streams, loop), pipes)

    @property
    def error_text(self) -> str:
        return self._stderr.decode(errors="replace")

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def write(self, data: bytes) -> None:
        try:
            self._input.write(data)
            await self._input.drain()
        except RuntimeError as error:
            # The pipe was closed.
            raise ConnectionError(str(error)) from error

    async def wait(self) -> None:
        await self._process.wait()
        await self._stderr_reader

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES]

    async def close(self) -> None:
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
