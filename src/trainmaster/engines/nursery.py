"""The dispatcher's end of `node/nursery.py`: agents in a tenth of the time that a new Python takes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.pids import pid_ended
from trainmaster.node.warm import VARIABLE

log = logging.getLogger("trainmaster.engines")

# So long after the last agent it is let go.
_IDLE_SECONDS = 30.0
_ANSWER_SECONDS = 5.0
_ANSWER_BYTES = 2048
# So long after a warm one could not be had none is tried again.
_REST_SECONDS = 60.0
_OF_RUNS = ("TRAINMASTER_", "AZUREML_")


class Nursery:
    """One process that forks agents. Where it fails the caller starts the agent itself: the claim decides."""

    def __init__(
        self,
        kit: str,
        python: Sequence[str] = (sys.executable, "-I", "-S"),
        modules: Sequence[str] = (),
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self.kit = kit
        self._lock = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._line, theirs = socket.socketpair()
        self._line.setblocking(False)
        try:
            self.pid = os.posix_spawn(
                python[0],
                [*python, f"{kit}/trainmaster/node/__main__.py", "--nursery", *modules],
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

    async def start(self, folder: Path) -> int | None:
        """The process id of a new agent for the plan in `folder`; None if there is none."""
        async with self._lock:
            if not self.lives:
                return None
            self._stay()
            answer = await self._ask(os.fsencode(folder / "plan.json") + b"\n", _ANSWER_SECONDS)
            return int(answer) if answer else None

    async def _ask(self, line: bytes, seconds: float | None) -> bytes:
        """The answer to a line; empty, and the end of it, if there is none in time."""
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._line, line)
            answer = await asyncio.wait_for(loop.sock_recv(self._line, _ANSWER_BYTES), seconds)
        except (OSError, TimeoutError):
            answer = b""
        if not answer.endswith(b"\n"):
            self.close()
            return b""
        return answer

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self.close)

    def close(self) -> None:
        """Lets it end; the agents go on."""
        if self._idle is not None:
            self._idle.cancel()
        if self.lives:
            self._line.close()
            # Waited for, so that it does not stay as a zombie.
            asyncio.get_running_loop().create_task(pid_ended(self.pid))


class WarmNursery(Nursery):
    """One of the run's own Python, which has imported modules that the run asks for. Ready when it has."""

    def __init__(self, kit: str, process: Mapping[str, Any]) -> None:
        python, modules = process["argv"][0], warm_modules(process)
        # Not the marks of the first run, by which the processes of a run are found.
        variables = {name: value for name, value in process["env"].items() if not name.startswith(_OF_RUNS)}
        super().__init__(kit, [python], modules, variables)
        self.is_ready = False
        self._failed_at: float | None = None
        self._modules = modules
        told = json.dumps({"python": python, "variables": dict(os.environ)}).encode() + b"\n"
        self._warming = asyncio.get_running_loop().create_task(self._warm_up(told))

    async def _warm_up(self, told: bytes) -> None:
        answer = await self._ask(told, None)
        self.is_ready = answer == b"ready\n"
        if self.is_ready:
            self._stay()
            return
        why = answer.decode("utf-8", "replace").strip() or "it ended"
        log.warning("%s %s: no warm Python, %s", VARIABLE, ",".join(self._modules), why)
        self._failed_at = time.monotonic()
        super().close()

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
