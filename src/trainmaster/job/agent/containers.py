"""Removes the containers of a run. Only their engine knows all of their processes."""

import subprocess
import time

from trainmaster.job.agent import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    from trainmaster.job.agent.plan import Process

# An engine that hangs must not keep an agent from writing its result.
_SECONDS = 15.0


def remove(processes: "Iterable[Process]", seconds: float = _SECONDS) -> "list[str]":
    """Removes the containers of planned processes, whatever runs in them. Returns a text for each that is left."""
    until = time.monotonic() + seconds
    removals = [_Removal(process) for process in processes if process.remove]
    problems = [(removal.rank, removal.wait(until)) for removal in removals]
    text = "the container of rank {} could not be removed: {}"
    return [text.format(rank, problem) for rank, problem in problems if problem]


class _Removal(object):
    """The engine's command that removes the container of one process, started at once."""

    def __init__(self, process: "Process") -> None:
        self.rank = process.rank
        self._command: "subprocess.Popen[bytes] | None" = None
        self._problem = ""
        try:
            self._command = subprocess.Popen(
                [spawn.encode(word) for word in process.remove],
                env={spawn.encode(name): spawn.encode(value) for name, value in process.env.items()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            self._problem = str(error)

    def wait(self, until: float) -> str:
        """Waits for the command, and kills it at the monotonic time `until`. Returns the problem, or nothing."""
        if self._command is None:
            return self._problem
        try:
            output = self._command.communicate(timeout=max(0.0, until - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            self._command.kill()
            self._command.communicate()
            return "the command took too long"
        if self._command.returncode == 0:
            return ""
        return output.decode("utf-8", "replace").strip() or "exit code {}".format(self._command.returncode)
