"""Whether a run has fallen silent: no output and no metric from any of its processes, on any of its nodes.

The logs and journals of all nodes lie in the run's folder, and their times come from one clock, that of its file
system. So the agents of all nodes come to the same answer at the same moment, without talking to each other. Nothing
is looked at more often than once in the time that may be silent, but for the moment when that time ends.
"""

import os
import time

from trainmaster.job.agent import jsonfile

# Beside the plan of a node: its agent took the silence for a hang.
NAME = "hang.json"


class Silence(object):
    """Looks at the logs and journals of the run in `run`, for the agent whose files are in `node`."""

    def __init__(self, run, node, seconds):
        self.seconds = seconds
        self._run = run
        self._node = node
        self._began = self._now()
        self.look_at = time.monotonic() + seconds

    def is_too_long(self):
        """Whether nothing was heard for so many seconds; if something was, `look_at` says when to ask again."""
        silent = self._now() - max(self._began, self._last_word())
        if silent >= self.seconds:
            return True
        # Not shorter than the clock's ticks, nor longer than the whole time if the clock was set back.
        self.look_at = time.monotonic() + min(max(self.seconds - silent, 0.01), self.seconds)
        return False

    def note(self):
        """Tells the other nodes, and the ranks under a launcher: what is written from now on is no sign of life."""
        jsonfile.write(os.path.join(self._node, NAME), {"version": 1, "at": time.time(), "seconds": self.seconds})

    def was_noted(self):
        """Whether an agent of this run, on whatever node, took the silence for a hang."""
        nodes = os.path.dirname(self._node)
        return any(os.path.exists(os.path.join(nodes, name, NAME)) for name in _names(nodes))

    def others(self):
        """The other nodes whose agents are at work and have not noted the hang yet."""
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

    def _last_word(self):
        folders = (os.path.join(self._run, "files", "azureml-logs"), os.path.join(self._run, "journals"))
        return max([0.0] + [_changed(os.path.join(folder, name)) for folder in folders for name in _names(folder)])

    def _now(self):
        """The file system's clock, which on a shared one is not this machine's."""
        try:
            os.utime(self._node)
            return os.stat(self._node).st_mtime
        except OSError:
            return time.time()


def _names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _changed(path):
    """When the file was written to last; 0 if there is none."""
    try:
        # Opened, because a network file system answers a bare stat from what it remembers.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
