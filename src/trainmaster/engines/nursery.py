"""The dispatcher's end of `node/nursery.py`: agents in a tenth of the time that a new Python takes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

# So long after the last agent it is let go.
_IDLE_SECONDS = 30.0
_ANSWER_SECONDS = 5.0


class Nursery:
    """One process that forks agents. Where it fails the caller starts the agent itself: the claim decides."""

    def __init__(self, kit: str) -> None:
        self.kit = kit
        self._lock = asyncio.Lock()
        self._line, theirs = socket.socketpair()
        self._line.setblocking(False)
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", f"{kit}/trainmaster/node/__main__.py", "--nursery"],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
            )
        finally:
            theirs.close()
        self._idle: asyncio.TimerHandle | None = None

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
            loop = asyncio.get_running_loop()
            try:
                await loop.sock_sendall(self._line, os.fsencode(folder / "plan.json") + b"\n")
                answer = await asyncio.wait_for(loop.sock_recv(self._line, 32), _ANSWER_SECONDS)
            except (OSError, TimeoutError):
                answer = b""
            if not answer.endswith(b"\n"):
                self.close()
                return None
            return int(answer)

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
            asyncio.get_running_loop().create_task(self._reap())

    async def _reap(self) -> None:
        from trainmaster.engines.local import pid_ended

        await pid_ended(self.pid)
