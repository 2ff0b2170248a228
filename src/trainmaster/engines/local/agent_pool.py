"""The dispatcher's end of `job/agent/pool.py`: agents in a tenth of the time that a new Python takes, or in no time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.engines.pids import wait_for_pid
from trainmaster.job.agent.preloaded import VARIABLE
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.engines")

# The pool is closed after this time without a new agent.
_IDLE_SECONDS = 30.0
# The most agents that are kept for another plan.
_MOST_FREE = 64
_ANSWER_SECONDS = 5.0
_ANSWER_BYTES = 2048
# After a preloaded pool has failed, no new one is tried for this time.
_FAILURE_PAUSE_SECONDS = 60.0
_RUN_VARIABLES = ("TRAINMASTER_", "AZUREML_")


class PooledAgent:
    """An agent of a pool. It executes one plan after another until its socket is closed."""

    def __init__(self, line: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.pid = 0
        self.was_signalled = False
        """Then it gets no other plan, which a late signal might reach."""
        self._line = line
        self._started: asyncio.Future[bytes] = loop.create_future()
        self._finished: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(line, self._receive)

    def _receive(self) -> None:
        try:
            message = self._line.recv(_ANSWER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self.close()
        elif not self._started.done():
            self._started.set_result(message)
        elif not self._finished.done():
            self._finished.set_result(message)

    async def has_started(self) -> bool:
        """Waits for its process id; returns whether it has one."""
        with contextlib.suppress(TimeoutError):
            self.pid = int(await asyncio.wait_for(self._started, _ANSWER_SECONDS) or 0)
        return self.pid > 0

    def assign(self, plan: bytes) -> bool:
        """Gives it another plan; returns False if it has ended."""
        self._finished = asyncio.get_running_loop().create_future()
        try:
            self._line.send(plan)
        except OSError:
            self.close()
            return False
        return True

    async def wait_for_end(self) -> bool:
        """Returns when it is done with its plan: True if it succeeded and can take another one."""
        message = await self._finished
        if not message:
            await wait_for_pid(self.pid)
        return bool(message)

    def close(self) -> None:
        """Lets it end as soon as it is idle."""
        if self._line.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._line)
            self._line.close()
        for future in (self._started, self._finished):
            if not future.done():
                future.set_result(b"")


class AgentPool:
    """A process that forks agents. If it fails, the caller starts the agent itself: the claim decides."""

    def __init__(
        self,
        kit: str,
        python: Sequence[str] = (sys.executable, "-I", "-S"),
        modules: Sequence[str] = (),
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self.kit = kit
        self._free: list[PooledAgent] = []
        self._idle: asyncio.TimerHandle | None = None
        self._used_at = 0.0
        self._line, theirs = _socket_pair()
        try:
            self.pid = os.posix_spawn(
                python[0],
                [*python, f"{kit}/trainmaster/job/agent/__main__.py", "--pool", *modules],
                variables,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
            )
        finally:
            theirs.close()

    @property
    def is_open(self) -> bool:
        """Whether it can start agents."""
        return self._line.fileno() >= 0

    async def start(self, folder: Path) -> PooledAgent | None:
        """An agent for the plan in `folder`, idle or new; None if the pool has failed."""
        plan = os.fsencode(folder / "plan.json")
        self._postpone_close()
        while self._free:
            agent = self._free.pop()
            if agent.assign(plan):
                return agent
        new = self._fork(plan)
        if new is None or await new.has_started():
            return new
        new.close()
        self.close()
        return None

    def _fork(self, plan: bytes) -> PooledAgent | None:
        ours, theirs = _socket_pair()
        try:
            socket.send_fds(self._line, [plan], [theirs.fileno()])
        except OSError:
            ours.close()
            self.close()
            return None
        finally:
            theirs.close()
        return PooledAgent(ours)

    async def wait_for_end(self, agent: PooledAgent) -> bool:
        """Returns when `agent` is done with its plan: True if it succeeded. Then it is kept for the next plan."""
        try:
            succeeded = await agent.wait_for_end()
        except asyncio.CancelledError:
            # It still executes its plan, but nobody waits for its end.
            agent.close()
            raise
        if succeeded and self.is_open and not agent.was_signalled and len(self._free) < _MOST_FREE:
            self._free.append(agent)
        else:
            agent.close()
        return succeeded

    def _postpone_close(self) -> None:
        loop = asyncio.get_running_loop()
        self._used_at = loop.time()
        if self._idle is None:
            self._idle = loop.call_later(_IDLE_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._idle = None
        loop = asyncio.get_running_loop()
        if loop.time() - self._used_at >= _IDLE_SECONDS:
            self.close()
        else:
            self._idle = loop.call_at(self._used_at + _IDLE_SECONDS, self._close_if_idle)

    def close(self) -> None:
        """Ends the pool; agents that execute a plan continue."""
        if self._idle is not None:
            self._idle.cancel()
        while self._free:
            self._free.pop().close()
        if self.is_open:
            self._line.close()
            # Without this it would stay as a zombie.
            start_task(f"end of process {self.pid}", partial(wait_for_pid, self.pid))


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Our end and theirs of a socket that keeps messages separate."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


class PreloadedPool(AgentPool):
    """A pool of the run's own Python, which first imports the modules that the run names."""

    def __init__(self, kit: str, process: Mapping[str, Any]) -> None:
        python, modules = process["argv"][0], modules_to_preload(process)
        # Without the variables of the first run, by which the processes of a run are found.
        variables = {name: value for name, value in process["env"].items() if not name.startswith(_RUN_VARIABLES)}
        super().__init__(kit, [python], modules, variables)
        self.is_ready = False
        """Whether the modules are imported."""
        self._failed_at: float | None = None
        self._modules = modules
        order = json.dumps({"python": python, "variables": dict(os.environ)}).encode()
        self._preloading = asyncio.get_running_loop().create_task(self._preload(order))

    async def _preload(self, order: bytes) -> None:
        answer = await self._call(order)
        self.is_ready = answer == b"ready"
        if self.is_ready:
            self._postpone_close()
            return
        reason = answer.decode("utf-8", "replace").strip() or "it ended"
        log.warning("%s=%s: the modules cannot be preloaded: %s", VARIABLE, ",".join(self._modules), reason)
        self._failed_at = time.monotonic()
        super().close()

    async def _call(self, order: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._line, order)
            return await loop.sock_recv(self._line, _ANSWER_BYTES)
        except OSError:
            return b""

    @property
    def has_failed_recently(self) -> bool:
        """Whether to wait: a new attempt for every run would cost more than preloading saves."""
        return self._failed_at is not None and time.monotonic() - self._failed_at < _FAILURE_PAUSE_SECONDS

    def close(self) -> None:
        self._preloading.cancel()
        super().close()


def modules_to_preload(process: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules that a process of a plan wants preloaded; most want none."""
    argv, names = process["argv"], process["env"].get(VARIABLE, "")
    is_script = len(argv) > 1 and argv[1].endswith(".py") and argv[0].startswith("/")
    return tuple(names.replace(",", " ").split()) if is_script else ()
