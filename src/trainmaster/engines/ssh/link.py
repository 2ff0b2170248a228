"""One node of one run: its agent is started on a host and watched, over a connection that may drop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.engines.ssh.data import RunData
from trainmaster.engines.ssh.host import SshHost
from trainmaster.engines.ssh.mirror import RESULT, Mirror
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json, write_json
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# Beside the plan of a node: which host it is for, and where things lie there.
NOTE = "ssh.json"
_MEGABYTE = 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


@dataclass(frozen=True)
class Order:
    """What one host is to do."""

    plan: dict[str, Any]
    files: dict[str, Any]
    """Further files of the run's folder there, by their path in it."""


class Link:
    """Starts the agent of one node and follows it to its end; also one that an earlier dispatcher started."""

    def __init__(
        self,
        host: SshHost,
        root: str,
        run_id: str,
        folder: RunFolder,
        number: int,
        *,
        common: bool,
        patience: float,
        owners: dict[str, int] | None,
        freight: RunData,
        heard: Callable[[str], Awaitable[None]],
        grown: Callable[[], Awaitable[None]],
        asked: Callable[[str, bytes], None],
        variables: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`common`: whether it reports what lies in the run's folder, and not only the files of its own node."""
        self.host = host
        self.number = number
        self.lost: ComputeTargetException | None = None
        self.facts: HostFacts | None = None
        self.doing = ""
        self._root = root
        self.run_id = run_id
        self._node = folder.node(number)
        self._mirror = Mirror(folder, number, owners, freight)
        self._back = freight.back
        self._common = common
        self._patience = patience
        self._heard = heard
        self._grown = grown
        self._asked = asked
        self._variables = variables
        self._heard_at = 0.0
        self._session: Session | None = None
        self._watching = False
        self._stopped = self._killed = self._last = False
        self._puts: dict[str, bytes] = {}

    # Before there is an agent

    async def connect(self) -> HostFacts:
        """Reaches the host."""
        self.doing = self.doing or f"reaching host {self.host.shown}"
        self._session, self.facts = await Session.open(self.host, self._root, self._patience, self._variables())
        self._mirror.behind = self.facts.behind
        self.doing = ""
        return self.facts

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    @property
    def session(self) -> Session:
        assert self._session is not None, "not connected"
        return self._session

    def say(self, what: str) -> Callable[[int, int], None]:
        """For those who bring something: how far they are is what the run waits for."""

        def told(done: int, total: int) -> None:
            part = f"{done // _MEGABYTE} of {total // _MEGABYTE} MB"
            self.doing = f"bringing the {what} to host {self.host.shown}: {part}" if done < total else ""

        return told

    def note(self, kit: str) -> None:
        """Writes down where the agent will be: from here on it has to be asked for there."""
        assert self.facts is not None
        place = {"host": self.host.shown, "address": self.facts.address, "root": self.facts.root}
        data = {"version": 1, **place, "kit": kit}
        self._node.mkdir(parents=True, exist_ok=True)
        write_json(self._node / NOTE, data)

    def forget(self) -> None:
        """There is no agent to ask for, and never was."""
        (self._node / NOTE).unlink(missing_ok=True)

    async def start(self, order: Order, attempt: int, shared: bool) -> None:
        """Has the agent started."""
        header = {
            "op": "start",
            "run": self.run_id,
            "folder": self._folder_there(self._mirror.node),
            "kit": self.kit,
            "attempt": attempt,
            "shared": shared,
            "first": self._common,
        }
        named = {self._folder_there(name): data for name, data in order.files.items()}
        await self.session.call(header, json.dumps({"plan": order.plan, "files": named}).encode())

    # While there is one

    async def follow(self) -> None:
        """Returns when the agent is gone and all it wrote is here, or when the host was silent for too long."""
        if (self._node / RESULT).exists():
            await self.close()
            return
        heard = time.monotonic()
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                if self._session is None:
                    await self.connect()
                heard = time.monotonic()
                await self._watch()
                return
            except ComputeTargetException as error:
                await self.close()
                heard = max(heard, self._heard_at)
                if self._watching:
                    backoff.reset()
                self._watching = False
                log.info("run %s, node %s: %s", self.run_id, self.number, error.message.replace("\n", " | "))
                self.doing = f"waiting for host {self.host.shown}: {error.message.splitlines()[0]}"
                if time.monotonic() - heard > self._patience:
                    self.lost = error
                    return
            await backoff.sleep()

    async def look_again(self) -> None:
        """Fetches what other nodes wrote to the shared folder since this one ended."""
        self._last = True
        with contextlib.suppress(ComputeTargetException):
            if self._session is None:
                await self.connect()
            await self._watch()

    async def _watch(self) -> None:
        self._mirror.lay_down()
        order = {
            "op": "watch",
            "run": self.run_id,
            "folder": self._folder_there(self._mirror.node),
            "kit": self.kit,
            "common": self._common or self._last,
            "back": self._back,
            "patience": self._patience / 2,
            "sizes": await asyncio.to_thread(self._mirror.sizes),
            "states": self._mirror.states(),
        }
        await self.session.send(order)
        self._watching = True
        self.doing = ""
        pinging = start_task("ping", self._ping)
        try:
            await self._say_again()
            await self._take_all()
        finally:
            self._watching = False
            pinging.cancel()
            await asyncio.gather(pinging, return_exceptions=True)
        # The connection is kept: the run's folder there is still to be removed.
        self._mirror.finish()

    async def _take_all(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._patience / 2):
                    header, payload = await self.session.receive()
            except TimeoutError:
                raise ComputeTargetException(f"host {self.host.shown} has fallen silent") from None
            self._heard_at = time.monotonic()
            if "ended" in header:
                return
            if "letter" in header:
                self._asked(header["letter"], payload)
                continue
            name = self._mirror.take(header, payload)
            if name:
                await self._heard(name)
            elif "grown" in header:
                await self._grown()

    async def _ping(self) -> None:
        """Tells the other end that somebody listens: it goes away if nobody does."""
        while True:
            await asyncio.sleep(self._patience / 8)
            with contextlib.suppress(ComputeTargetException):
                await self.session.send({"op": "ping"})

    async def _say_again(self) -> None:
        """What may not have arrived over the connection before this one; each counts once, however often it is said."""
        for path, data in self._puts.items():
            await self.session.send({"op": "put", "path": path}, data)
        if self._stopped:
            await self.session.send({"op": "stop"})
        if self._killed:
            await self.session.send({"op": "kill"})

    async def put(self, path: str, data: bytes) -> None:
        """Brings a file into the run's folder there."""
        self._puts[path] = data
        await self._tell({"op": "put", "path": path}, data)

    async def answer(self, name: str, data: bytes) -> None:
        """Answers a letter of the script; one that is not answered over this connection comes again over the next."""
        await self._tell({"op": "answer", "name": name}, data)

    async def stop(self) -> None:
        """Asks the agent to end its processes."""
        self._stopped = True
        await self._tell({"op": "stop"})

    async def kill(self) -> None:
        """Ends the agent at once."""
        self._killed = True
        await self._tell({"op": "kill"})

    async def _tell(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        if self._watching:
            # If it does not arrive, it is said again over the next connection.
            with contextlib.suppress(ComputeTargetException):
                await self.session.send(header, payload)

    # After it

    async def sweep(self, remove: bool) -> None:
        """Ends all that is left of the run on the host and, if it is over for good, removes its folder there."""
        if self._session is None:
            await self.connect()
        await self.session.call({"op": "sweep", "run": self.run_id, "kit": self.kit, "remove": remove})

    async def close(self) -> None:
        """Ends the connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def address(self) -> str:
        """Under which it was reached when the agent was started."""
        return str((read_json(self._node / NOTE) or {}).get("address", ""))

    @property
    def kit(self) -> str:
        """Of the agent; empty if none was ever to be started."""
        return str((read_json(self._node / NOTE) or {}).get("kit", ""))

    def _folder_there(self, name: str) -> str:
        return f"runs/{self.run_id}/{name}"
