"""The dispatcher's end of `job/agent/pool.py`: agents in a tenth of the time that a new Python takes, or in none."""

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

from trainmaster.engines.pids import pid_ended
from trainmaster.job.agent.preloaded import VARIABLE
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.engines")

# So long after the last agent it is let go.
_IDLE_SECONDS = 30.0
# So many agents at most wait for another plan.
_MOST_FREE = 64
_ANSWER_SECONDS = 5.0
_ANSWER_BYTES = 2048
# So long after a warm one could not be had none is tried again.
_REST_SECONDS = 60.0
_OF_RUNS = ("TRAINMASTER_", "AZUREML_")


class Agent:
    """One that the nursery made: it carries out a plan, and others after it, until its line is closed."""

    def __init__(self, line: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.pid = 0
        self.is_told = False
        """Whether it was signalled; then it takes no other plan, which the signal might reach late."""
        self._line = line
        self._born: asyncio.Future[bytes] = loop.create_future()
        self._done: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(line, self._hear)

    def _hear(self) -> None:
        try:
            said = self._line.recv(_ANSWER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self.close()
        elif not self._born.done():
            self._born.set_result(said)
        elif not self._done.done():
            self._done.set_result(said)

    async def is_born(self) -> bool:
        """Whether it came to life; then it has a process id."""
        with contextlib.suppress(TimeoutError):
            self.pid = int(await asyncio.wait_for(self._born, _ANSWER_SECONDS) or 0)
        return self.pid > 0

    def takes(self, plan: bytes) -> bool:
        """Gives it another plan; false if it is not there any more."""
        self._done = asyncio.get_running_loop().create_future()
        try:
            self._line.send(plan)
        except OSError:
            self.close()
            return False
        return True

    async def ended(self) -> bool:
        """Returns when its plan is not in its hands any more; whether it carried it out well and is there still."""
        said = await self._done
        if not said:
            await pid_ended(self.pid)
        return bool(said)

    def close(self) -> None:
        """Lets it end as soon as it has nothing to do."""
        if self._line.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._line)
            self._line.close()
        for word in (self._born, self._done):
            if not word.done():
                word.set_result(b"")


class AgentPool:
    """One process that forks agents. Where it fails the caller starts the agent itself: the claim decides."""

    def __init__(
        self,
        kit: str,
        python: Sequence[str] = (sys.executable, "-I", "-S"),
        modules: Sequence[str] = (),
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self.kit = kit
        self._free: list[Agent] = []
        self._idle: asyncio.TimerHandle | None = None
        self._used_at = 0.0
        self._line, theirs = _pair()
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
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._line.fileno() >= 0

    async def start(self, folder: Path) -> Agent | None:
        """An agent for the plan in `folder`: one that has nothing to do, or a new one; None if there is none."""
        plan = os.fsencode(folder / "plan.json")
        self._stay()
        while self._free:
            agent = self._free.pop()
            if agent.takes(plan):
                return agent
        new = self._forked(plan)
        if new is None or await new.is_born():
            return new
        new.close()
        self.close()
        return None

    def _forked(self, plan: bytes) -> Agent | None:
        ours, theirs = _pair()
        try:
            socket.send_fds(self._line, [plan], [theirs.fileno()])
        except OSError:
            ours.close()
            self.close()
            return None
        finally:
            theirs.close()
        return Agent(ours)

    async def ended(self, agent: Agent) -> bool:
        """Returns when `agent` has nothing to do with its plan any more; whether it says that all went well.

        Then it is kept for the next plan.
        """
        try:
            well = await agent.ended()
        except asyncio.CancelledError:
            # It is carrying out its plan still, and nobody will hear when it has.
            agent.close()
            raise
        if well and self.lives and not agent.is_told and len(self._free) < _MOST_FREE:
            self._free.append(agent)
        else:
            agent.close()
        return well

    def _stay(self) -> None:
        """It is let go when it was not used for a while."""
        loop = asyncio.get_running_loop()
        self._used_at = loop.time()
        if self._idle is None:
            self._idle = loop.call_later(_IDLE_SECONDS, self._look)

    def _look(self) -> None:
        self._idle = None
        loop = asyncio.get_running_loop()
        if loop.time() - self._used_at >= _IDLE_SECONDS:
            self.close()
        else:
            self._idle = loop.call_at(self._used_at + _IDLE_SECONDS, self._look)

    def close(self) -> None:
        """Lets it end; agents that carry out a plan go on."""
        if self._idle is not None:
            self._idle.cancel()
        while self._free:
            self._free.pop().close()
        if self.lives:
            self._line.close()
            # Waited for, so that it does not stay as a zombie.
            start_task(f"end of process {self.pid}", partial(pid_ended, self.pid))


def _pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a line that keeps messages apart; the first is ours."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


class WarmNursery(AgentPool):
    """One of the run's own Python, which has imported modules that the run asks for. Ready when it has."""

    def __init__(self, kit: str, process: Mapping[str, Any]) -> None:
        python, modules = process["argv"][0], warm_modules(process)
        # Not the marks of the first run, by which the processes of a run are found.
        variables = {name: value for name, value in process["env"].items() if not name.startswith(_OF_RUNS)}
        super().__init__(kit, [python], modules, variables)
        self.is_ready = False
        self._failed_at: float | None = None
        self._modules = modules
        told = json.dumps({"python": python, "variables": dict(os.environ)}).encode()
        self._warming = asyncio.get_running_loop().create_task(self._warm_up(told))

    async def _warm_up(self, told: bytes) -> None:
        answer = await self._ask(told)
        self.is_ready = answer == b"ready"
        if self.is_ready:
            self._stay()
            return
        why = answer.decode("utf-8", "replace").strip() or "it ended"
        log.warning("%s %s: no warm Python, %s", VARIABLE, ",".join(self._modules), why)
        self._failed_at = time.monotonic()
        super().close()

    async def _ask(self, told: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._line, told)
            return await loop.sock_recv(self._line, _ANSWER_BYTES)
        except OSError:
            return b""

    @property
    def rests(self) -> bool:
        """Whether it could not be had lately: trying again for every run would cost more than it ever gives."""
        return self._failed_at is not None and time.monotonic() - self._failed_at < _REST_SECONDS

    def close(self) -> None:
        self._warming.cancel()
        super().close()


def warm_modules(process: Mapping[str, Any]) -> tuple[str, ...]:
    """What a process of a plan wants to have imported before it starts; nothing for most."""
    argv, wanted = process["argv"], process["env"].get(VARIABLE, "")
    is_script = len(argv) > 1 and argv[1].endswith(".py") and argv[0].startswith("/")
    return tuple(wanted.replace(",", " ").split()) if is_script else ()
