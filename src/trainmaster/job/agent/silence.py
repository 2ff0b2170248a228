"""Detects a silent run: no output and no metric from any of its processes, on any of its nodes.

The logs and journals of all nodes are in the run's folder, and their times come from one clock, that of its file
system. So the agents of all nodes come to the same answer at the same moment without talking to each other. An agent
looks at the files only when the permitted time of silence may be over.
"""

import os
import time

from trainmaster.job.agent import jsonfile

# Beside the plan of a node: its agent considers the run hung.
NAME = "hang.json"
# Journals that the agent itself writes begin like this.
MEASUREMENTS = "system-"


class Silence(object):
    """Watches the logs and journals of the run in `run`, for the agent whose files are in `node`."""

    def __init__(self, run: str, node: str, seconds: float) -> None:
        self.seconds = seconds
        self._run = run
        self._node = node
        self._began = self._now()
        self.look_at = time.monotonic() + seconds

    def is_too_long(self) -> bool:
        """Whether the run was silent for the permitted time; if not, sets `look_at` to the time of the next check."""
        silent = self._now() - max(self._began, self._last_change())
        if silent >= self.seconds:
            return True
        # At least one tick of the clock, and at most the whole time if the clock was set back.
        self.look_at = time.monotonic() + min(max(self.seconds - silent, 0.01), self.seconds)
        return False

    def note(self) -> None:
        """Tells the other nodes, and the ranks under a launcher, that later output is no longer a sign of life."""
        jsonfile.write(os.path.join(self._node, NAME), {"version": 1, "at": time.time(), "seconds": self.seconds})

    def was_noted(self) -> bool:
        """Whether an agent of this run, on any node, considers the run hung."""
        nodes = os.path.dirname(self._node)
        return any(os.path.exists(os.path.join(nodes, name, NAME)) for name in _names(nodes))

    def nodes_without_note(self) -> "list[str]":
        """The folders of the other nodes whose agents are running and have not noted the hang yet."""
        nodes = os.path.dirname(self._node)
        folders = [os.path.join(nodes, name) for name in _names(nodes)]
        return [
            folder
            for folder in folders
            if folder != self._node
            and os.path.exists(os.path.join(folder, "running.json"))
            and not os.path.exists(os.path.join(folder, "result.json"))
            and not os.path.exists(os.path.join(folder, NAME))
        ]

    def _last_change(self) -> float:
        folders = (os.path.join(self._run, "files", "azureml-logs"), os.path.join(self._run, "journals"))
        times = [
            _modification_time(os.path.join(folder, name))
            for folder in folders
            for name in _names(folder)
            if not name.startswith(MEASUREMENTS)
        ]
        return max([0.0, *times])

    def _now(self) -> float:
        """The time by the clock of the file system, which may be on another machine."""
        try:
            os.utime(self._node)
            return os.stat(self._node).st_mtime
        except OSError:
            return time.time()


def _names(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _modification_time(path: str) -> float:
    """When the file was last written to; 0 if it does not exist."""
    try:
        # Opened, because a network file system answers a mere stat from its cache.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
