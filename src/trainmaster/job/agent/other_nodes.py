"""What agents on machines of their own tell each other without the dispatcher: by the files of their nodes.

The dispatcher does the same, sooner. But it may be gone, or out of reach: then one failed node ends the others,
services end when nobody needs them, and agents whose run was given up end their processes, all the same.
"""

import os
import time

from trainmaster.job.agent import jsonfile

STOP = "stop.json"
_SECONDS = 2.0


class OtherNodes(object):
    """Looks now and then; the more nodes there are, the less often."""

    def __init__(self, folder, nodes):
        self._folder = os.path.dirname(folder)
        self._nodes = nodes
        self._every = _SECONDS + nodes / 8.0
        self.look_at = time.monotonic() + self._every

    def says_stop(self):
        """Whether the processes of this node are to end now."""
        if time.monotonic() < self.look_at:
            return False
        self.look_at = time.monotonic() + self._every
        return os.path.exists(os.path.join(self._folder, STOP)) or (self._nodes > 1 and self._is_over())

    def _is_over(self):
        """Whether a node has failed, or nothing but services is left anywhere."""
        results = [self._read(node, "result.json") for node in range(self._nodes)]
        if any(result is not None and not _ended_well(result) for result in results):
            return True
        return all(self._is_served(node) for node, result in enumerate(results) if result is None)

    def _is_served(self, node):
        if self._read(node, "done.json") is not None:
            return True
        processes = (self._read(node, "plan.json") or {}).get("processes", [])
        return bool(processes) and all(process.get("service") for process in processes)

    def _read(self, node, name):
        try:
            return jsonfile.read(os.path.join(self._folder, str(node), name))
        except (OSError, ValueError):
            return None


def _ended_well(result):
    return result.get("reason") == "exited" and not result.get("first_failure")
