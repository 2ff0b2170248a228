"""One replica, as the supervisor sees it: a process, its slot in the counters, and the channel to it."""

from __future__ import annotations

import json
import os
import signal
import socket
from dataclasses import dataclass
from typing import Any, Literal

from trainmaster.job.agent import spawn
from trainmaster.shared.service_plan import VARIABLE, ServiceFiles, ServicePlan


@dataclass(frozen=True)
class _Program:
    """The process description for `job.agent.spawn`."""

    argv: list[str]
    cwd: str
    log: str
    rank: int = 0


class ReplicaProcess:
    """A process of one generation: starting, ready or draining."""

    def __init__(self, plan: ServicePlan, files: ServiceFiles, slot: int, listening: int) -> None:
        """Start the process. Raises `spawn.StartError`."""
        self.generation = plan.generation
        self.slot = slot
        self.state: Literal["starting", "ready", "draining"] = "starting"
        self.ready_at = 0.0
        self.deadline = 0.0
        self.error: dict[str, str] | None = None
        self.channel, theirs = socket.socketpair()
        self._received = b""
        theirs.set_inheritable(True)
        numbers = (str(listening), str(theirs.fileno()), str(files.numbers), str(slot), str(plan.drain_seconds))
        server, settings = files.server(plan.generation), files.settings(plan.generation)
        argv = [plan.python, str(server), "serve", str(settings), *numbers]
        program = _Program(argv, plan.scoring.working_folder, str(files.log))
        variables = {**plan.variables, "AZUREML_MODEL_DIR": plan.scoring.model_dir, VARIABLE: plan.folder}
        try:
            started = spawn.start(program, variables)
            started.confirm()
        except BaseException:
            self.channel.close()
            raise
        finally:
            theirs.close()
        self.pid: int = started.pid
        self.channel.setblocking(False)

    def receive(self) -> Literal["ready", "error", "gone"] | None:
        """Read the next message of the replica; None if there is none."""
        try:
            data = self.channel.recv(65536)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            return "gone"
        self._received += data
        if not self._received.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(self._received)
        self._received = b""
        if "error" in message:
            self.error = message["error"]
            return "error"
        return "ready"

    def send(self, command: bytes) -> None:
        """Send a command: `o` open, `d` drain, `s` drain and close idle connections."""
        try:
            self.channel.send(command)
        except OSError:
            return  # the replica has ended, which the supervisor notices elsewhere

    def kill(self) -> None:
        """Kill the process. It is our child and was not reaped yet, so its process id is still valid."""
        os.kill(self.pid, signal.SIGKILL)
