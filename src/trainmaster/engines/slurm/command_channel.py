"""A connection to a login node that calls commands and watches many runs (`job/helper/command_channel.py`)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmaster.engines.slurm.commands import Said, late
from trainmaster.engines.slurm.options import PASSED_ON, PASSED_ON_BEGINNINGS
from trainmaster.engines.ssh.host import SshHost
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.engines.ssh.ssh_errors import Unreachable
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.tasks import start_task

Take = Callable[[str, dict[str, Any], bytes], None]
"""Takes what becomes of a run: under which name it is watched, a header, and bytes."""


class CommandChannel:
    """An open connection. When it breaks, all who wait for something hear why."""

    def __init__(self, session: Session, facts: HostFacts, patience: float, take: Take) -> None:
        self.facts = facts
        self.broken: asyncio.Future[ComputeTargetException] = asyncio.get_running_loop().create_future()
        """Why it is not there any more, once it is so."""
        self._session = session
        self._patience = patience
        self._take = take
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._tasks = [asyncio.create_task(self._receive()), start_task(f"ping of {session.host.shown}", self._ping)]

    @classmethod
    async def open(cls, host: SshHost, root: str, patience: float, take: Take) -> CommandChannel:
        """Connects; `root` is the folder of the workspace there, which is made if need be."""
        return await cls.at(*await Session.open(host, root, patience), patience, take)

    @classmethod
    async def at(cls, session: Session, facts: HostFacts, patience: float, take: Take) -> CommandChannel:
        """On a connection that is there already."""
        await session.send(
            {
                "op": "desk",
                "patience": patience / 2,
                "program": "sbatch",
                "variables": PASSED_ON,
                "beginnings": PASSED_ON_BEGINNINGS,
            }
        )
        return cls(session, facts, patience, take)

    async def carry_out(self, command: Sequence[str], given: str, seconds: float) -> Said:
        """Calls a command there. Raises NoAnswer if it takes too long."""
        order = {"op": "run", "argv": list(command), "seconds": seconds}
        answer, said = await self.ask(order, given.encode())
        if "missing" in answer:
            raise ComputeTargetException(
                f"host {self._session.host.shown} has no {command[0]}",
                cause=str(answer["missing"]),
                hint="Is it a machine from which jobs are submitted (a login node)? Try there: 'which sbatch'.",
            )
        if "late" in answer:
            raise late(command, seconds)
        out, error = said[: answer["out"]], said[answer["out"] :]
        return Said(answer["code"], out.decode("utf-8", "replace"), error.decode("utf-8", "replace"))

    async def ask(self, header: Mapping[str, Any], payload: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """The answer to a request. Raises ComputeTargetException if the connection breaks before it comes."""
        if self.broken.done():
            raise self.broken.result()
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({**header, "id": number}, payload)
            answer, data = await self._waiting[number]
        finally:
            del self._waiting[number]
        if "error" in answer:
            raise ComputeTargetException(
                f"host {self._session.host.shown} could not do as asked", cause=str(answer["error"])
            )
        return answer, data

    async def _send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        try:
            await self._session.send(header, payload)
        except ComputeTargetException as error:
            # Whoever writes may notice it before whoever reads.
            self._break(error)

    async def _receive(self) -> None:
        try:
            while True:
                await self._take_one()
        except TimeoutError:
            self._break(Unreachable(f"host {self._session.host.shown} has fallen silent"))
        except ComputeTargetException as error:
            self._break(error)
        except Exception as error:  # noqa: BLE001 (without a reader the connection is of no use)
            # A full disk, as a rule. The next connection brings it again.
            shown = self._session.host.shown
            self._break(ComputeTargetException(f"what came from host {shown} could not be kept", cause=str(error)))

    async def _take_one(self) -> None:
        async with asyncio.timeout(self._patience / 2):
            header, payload = await self._session.receive()
        waiting = self._waiting.get(header.get("id", 0))
        if waiting is not None and not waiting.done():
            waiting.set_result((header, payload))
        elif "of" in header:
            self._take(header["of"], header, payload)

    async def _ping(self) -> None:
        """Tells the other end that somebody listens: it goes away if nobody does."""
        while True:
            await asyncio.sleep(self._patience / 8)
            await self._send({"op": "ping"})

    def _break(self, error: ComputeTargetException) -> None:
        if not self.broken.done():
            self.broken.set_result(error)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    async def close(self) -> None:
        """Ends the connection; jobs go on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._break(Unreachable(f"the connection to host {self._session.host.shown} was closed"))
        await self._session.close()
