"""What agents on separate machines tell each other without the dispatcher, through the files of their nodes.

The dispatcher does the same, and sooner. But it may have ended or be out of reach. Then this still ends the other nodes
when one failed, services when nothing needs them, and the processes of a run that was given up.
"""

import os
import time

from trainmaster.job.agent import jsonfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STOP = "stop.json"
_SECONDS = 2.0


class OtherNodes(object):
    """Looks at the files of all nodes from time to time; less often if there are many nodes."""

    def __init__(self, folder: str, nodes: int) -> None:
        self._folder = os.path.dirname(folder)
        self._nodes = nodes
        self._every = _SECONDS + nodes / 8.0
        self.look_at = time.monotonic() + self._every

    def is_stop_required(self) -> bool:
        """Whether the processes of this node have to end now."""
        if time.monotonic() < self.look_at:
            return False
        self.look_at = time.monotonic() + self._every
        return os.path.exists(os.path.join(self._folder, STOP)) or (self._nodes > 1 and self._is_over())

    def _is_over(self) -> bool:
        """Whether a node has failed, or only services are left on all nodes."""
        results = [self._read(node, "result.json") for node in range(self._nodes)]
        if any(result is not None and not _is_success(result) for result in results):
            return True
        return all(self._has_only_services(node) for node, result in enumerate(results) if result is None)

    def _has_only_services(self, node: int) -> bool:
        if self._read(node, "done.json") is not None:
            return True
        processes = (self._read(node, "plan.json") or {}).get("processes", [])
        return bool(processes) and all(process.get("service") for process in processes)

    def _read(self, node: int, name: str) -> "dict[str, Any] | None":
        data: "dict[str, Any] | None" = jsonfile.read_if_valid(os.path.join(self._folder, str(node), name))
        return data


def _is_success(result: "dict[str, Any]") -> bool:
    return result.get("reason") == "exited" and not result.get("first_failure")
