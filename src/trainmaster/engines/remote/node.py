"""One node of one run: its agent is started on a host and watched over a connection that may be lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.engines.remote.channel import Host
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.data import RunData
from trainmaster.engines.remote.messages import Messages
from trainmaster.engines.remote.mirror import RESULT, Mirror
from trainmaster.engines.remote.retrying import host_backoff
from trainmaster.engines.remote.starting import Order
from trainmaster.job.agent.silence import MEASUREMENTS
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json, write_json

log = logging.getLogger("trainmaster.dispatch")


@dataclass(frozen=True)
class HostUse:
    """How a host is used by a node."""

    root: str
    """The workspace's folder there."""
    silence: float
    """The number of seconds after which a host that does not answer may count as lost."""
    note: str
    """The name of the file beside the plan of the node that says where its agent is: the host, and the paths there."""
    is_lost: Callable[[float], bool]
    """Whether a host that has not answered for this many seconds is lost for good."""


class RemoteNode:
    """Starts the agent of one node and follows it to its end, even if an earlier dispatcher started it."""

    def __init__(
        self,
        host: Host,
        use: HostUse,
        run_id: str,
        folder: RunFolder,
        number: int,
        *,
        common: bool,
        owners: dict[str, int] | None,
        data: RunData,
        on_file: Callable[[str], Awaitable[None]],
        on_growth: Callable[[], Awaitable[None]],
        on_request: Callable[[str, bytes], None],
    ) -> None:
        """`common`: whether it reports the files of the whole run, and not only those of its own node."""
        self.host = host
        self.run_id = run_id
        self.number = number
        self.lost: ComputeTargetException | None = None
        """Why the host counts as lost."""
        self.activity = ""
        """What the run waits for here, as a sentence."""
        self._use = use
        self._node = folder.node(number)
        self._path_there = f"runs/{run_id}/{self._node.relative_to(folder.path)}"
        self._mirror = Mirror(folder, number, owners, data)
        self._common = common
        self.silence = use.silence
        """The number of seconds after which the silent host counts as lost."""
        self._on_file = on_file
        self._on_growth = on_growth
        self._on_request = on_request
        self._received_at = 0.0
        self._connection: Connection | None = None
        self._is_watching = False
        self._is_last_look = False
        self._messages = Messages()

    # Before there is an agent

    async def connect(self) -> Connection:
        """Connects to the host."""
        self.activity = self.activity or f"connecting to {self.host.title}"
        self._connection = await Connection.open(self.host, self._use.root, self.silence)
        self._mirror.behind = self._connection.facts.behind
        self.activity = ""
        return self._connection

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def connection(self) -> Connection:
        assert self._connection is not None, "not connected"
        return self._connection

    def report(self, activity: str) -> None:
        """Sets what the run waits for here."""
        self.activity = activity

    def note(self, kit: str, address: str) -> None:
        """Writes down where the agent will be. From now on the engine looks for it there."""
        place = {"host": self.host.label, "address": address, "root": self.connection.facts.root}
        self._node.mkdir(parents=True, exist_ok=True)
        write_json(self._node / self._use.note, {"version": 1, **place, "kit": kit})

    def forget(self) -> None:
        """Removes the note: no agent was started."""
        (self._node / self._use.note).unlink(missing_ok=True)

    async def start(self, order: Order, attempt: int, shared: bool) -> None:
        """Has the helper start the agent."""
        header = {
            "op": "start",
            "run": self.run_id,
            "folder": self._path_there,
            "kit": self.kit,
            "attempt": attempt,
            "shared": shared,
            "first": self._common,
        }
        files = {f"runs/{self.run_id}/{name}": data for name, data in order.files.items()}
        await self.connection.call(header, json.dumps({"plan": order.plan, "files": files}).encode())

    # While there is an agent

    async def follow(self) -> None:
        """Returns when the agent has ended and all its files are here, or when the host was silent for too long."""
        if (self._node / RESULT).exists():
            await self.close()
            return
        received = time.monotonic()
        backoff = host_backoff()
        while True:
            try:
                if self._connection is None:
                    await self.connect()
                received = time.monotonic()
                await self._watch()
                return
            except ComputeTargetException as error:
                await self.close()
                if self._received_at > received:
                    received = self._received_at
                    backoff.reset()
                log.info("run %s, node %s: %s", self.run_id, self.number, error.message.replace("\n", " | "))
                self.activity = f"waiting for {self.host.title}: {error.message.splitlines()[0]}"
                if self._use.is_lost(time.monotonic() - received):
                    self.lost = error
                    return
            await backoff.sleep()

    async def look_again(self) -> None:
        """Fetches what other nodes wrote to the shared folder after this node ended."""
        self._is_last_look = True
        with contextlib.suppress(ComputeTargetException):
            if self._connection is None:
                await self.connect()
            await self._watch()

    async def _watch(self) -> None:
        self._mirror.make_folders()
        order = {
            "op": "watch",
            "run": self.run_id,
            "folder": self._path_there,
            "kit": self.kit,
            "common": self._common or self._is_last_look,
            "patience": self.silence / 2,
            **await asyncio.to_thread(self._mirror.summary),
        }
        await self.connection.send(order)
        self._is_watching = True
        self.activity = ""
        pings = self.connection.start_pings(self.silence / 8)
        try:
            for header, payload in self._messages:
                await self.connection.send(header, payload)
            await self._receive_until_end()
        finally:
            self._is_watching = False
            pings.cancel()
            await asyncio.gather(pings, return_exceptions=True)
        # The connection stays open: the run's folder on the host has still to be removed.
        self._mirror.finish()

    async def _receive_until_end(self) -> None:
        while True:
            header, payload = await self.connection.receive_within(self.silence / 2)
            self._received_at = time.monotonic()
            if "ended" in header:
                return
            if "letter" in header:
                self._on_request(header["letter"], payload)
                continue
            name = self._mirror.take(header, payload)
            if name:
                await self._on_file(name)
            elif "grown" in header and not header["grown"].startswith(f"journals/{MEASUREMENTS}"):
                await self._on_growth()

    async def put(self, path: str, data: bytes) -> None:
        """Writes a file to the run's folder on the host."""
        await self._send_reliably({"op": "put", "path": path}, data)

    async def stop(self) -> None:
        """Asks the agent to end its processes."""
        await self._send_reliably({"op": "stop"})

    async def kill(self) -> None:
        """Kills the agent."""
        await self._send_reliably({"op": "kill"})

    async def answer(self, name: str, data: bytes) -> None:
        """Answers a request of the script. The host repeats a request that gets no answer over this connection."""
        await self._send({"op": "answer", "name": name}, data)

    async def _send_reliably(self, header: dict[str, Any], payload: bytes = b"") -> None:
        self._messages.add(header, payload)
        await self._send(header, payload)

    async def _send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        if self._is_watching:
            with contextlib.suppress(ComputeTargetException):
                await self.connection.send(header, payload)

    # After the agent has ended

    async def sweep(self, remove: bool) -> None:
        """Ends all processes of the run on the host; `remove` also removes the run's folder there."""
        if self._connection is None:
            await self.connect()
        await self.connection.call({"op": "sweep", "run": self.run_id, "kit": self.kit, "remove": remove})

    async def close(self) -> None:
        """Closes the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    @property
    def address(self) -> str:
        """The address of the host when the agent was started."""
        return str((read_json(self._node / self._use.note) or {}).get("address", ""))

    @property
    def kit(self) -> str:
        """The kit of the agent; empty if no agent was to be started."""
        return str((read_json(self._node / self._use.note) or {}).get("kit", ""))
