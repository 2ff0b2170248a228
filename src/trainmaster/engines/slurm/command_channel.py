"""A connection to a login node that runs commands and watches many runs (`job/helper/command_channel.py`)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmaster.engines.remote.channel import Host, Unreachable
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.slurm.commands import CommandResult, timeout_error
from trainmaster.engines.slurm.options import COMMAND_PREFIXES, COMMAND_VARIABLES
from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.helper import messages

OnReport = Callable[[str, dict[str, Any], bytes], None]
"""Called for each report about a run: with the name under which it is watched, a header and bytes."""


class CommandChannel:
    """An open connection. If it is lost, everyone who waits for an answer gets the error."""

    def __init__(self, connection: Connection, silence: float, on_report: OnReport) -> None:
        self.lost: asyncio.Future[ComputeTargetException] = asyncio.get_running_loop().create_future()
        """The reason, once the connection is lost."""
        self._connection = connection
        self._silence = silence
        self._on_report = on_report
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._tasks = [asyncio.create_task(self._receive()), connection.start_pings(silence / 8)]

    @classmethod
    async def open(cls, host: Host, root: str, silence: float, on_report: OnReport) -> CommandChannel:
        """Connects; creates `root`, the folder of the workspace there, if necessary."""
        return await cls.start(await Connection.open(host, root, silence), silence, on_report)

    @classmethod
    async def start(cls, connection: Connection, silence: float, on_report: OnReport) -> CommandChannel:
        """Uses an open connection."""
        await connection.send(
            {
                "op": "desk",
                "patience": silence / 2,
                "program": "sbatch",
                "variables": COMMAND_VARIABLES,
                "beginnings": COMMAND_PREFIXES,
            }
        )
        return cls(connection, silence, on_report)

    @property
    def user(self) -> int:
        """The id of the user there."""
        return self._connection.facts.user

    async def run_command(self, command: Sequence[str], stdin: str, seconds: float) -> CommandResult:
        """Runs a command there. Raises NoAnswer if it takes too long."""
        request = {"op": "run", "argv": list(command), "seconds": seconds}
        answer, output = await self.call(request, stdin.encode())
        if "missing" in answer:
            raise ComputeTargetException(
                f"host {self._connection.host.label} has no {command[0]}",
                cause=str(answer["missing"]),
                hint="Check that jobs are submitted from this machine (a login node): try 'which sbatch' there.",
            )
        if "late" in answer:
            raise timeout_error(command, seconds)
        out, error = output[: answer["out"]], output[answer["out"] :]
        return CommandResult(answer["code"], out.decode("utf-8", "replace"), error.decode("utf-8", "replace"))

    async def call(self, header: Mapping[str, Any], payload: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """Sends a request and returns the answer. Raises ComputeTargetException if the connection is lost before."""
        if self.lost.done():
            raise self.lost.result()
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            try:
                await self._connection.send({**header, "id": number}, payload)
            except ComputeTargetException as error:
                # A writer may notice the loss before the reader does.
                self._lose(error)
            answer, data = await self._waiting[number]
        finally:
            del self._waiting[number]
        messages.check(answer, self._error_of)
        return answer, data

    def _error_of(self, problem: str) -> ComputeTargetException:
        return ComputeTargetException(
            f"host {self._connection.host.label} could not carry out a request", cause=problem
        )

    async def _receive(self) -> None:
        try:
            while True:
                self._dispatch(*await self._connection.receive_within(self._silence / 2))
        except ComputeTargetException as error:
            self._lose(error)
        except Exception as error:  # noqa: BLE001 (a connection without a reader is useless)
            # Usually a full disk. The next connection sends the same again.
            label = self._connection.host.label
            self._lose(ComputeTargetException(f"what came from host {label} could not be stored", cause=str(error)))

    def _dispatch(self, header: dict[str, Any], payload: bytes) -> None:
        waiting = self._waiting.get(header.get("id", 0))
        if waiting is not None and not waiting.done():
            waiting.set_result((header, payload))
        elif "of" in header:
            self._on_report(header["of"], header, payload)

    def _lose(self, error: ComputeTargetException) -> None:
        if not self.lost.done():
            self.lost.set_result(error)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    async def close(self) -> None:
        """Closes the connection; jobs keep running."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._lose(Unreachable(f"the connection to host {self._connection.host.label} was closed"))
        await self._connection.close()
