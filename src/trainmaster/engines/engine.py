"""What an engine does for the dispatcher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainmaster.folders import RunFolder


@dataclass(frozen=True)
class Nodes:
    """The nodes of one run: what an engine needs to start, find, stop and clean up after it."""

    run_id: str
    folder: RunFolder
    count: int


class Engine(Protocol):
    """Starts the node agents of a run, all or none, and tells when they are gone.

    The agents' files (plan, claim, result) are the truth; an engine only brings agents to life and watches them. All
    of it works for a run started by an earlier dispatcher.
    """

    def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        """Starts an agent for every plan. Starting twice is harmless: the claim decides."""

    async def ended(self, nodes: Nodes, number: int) -> None:
        """Returns when the agent of node `number` does not live."""

    def stop(self, nodes: Nodes) -> None:
        """Asks the agents to end their processes (they know the grace time). Those that have ended are no matter."""

    def kill(self, nodes: Nodes) -> None:
        """Ends agents that do not answer, at once; what they leave is for `sweep`."""

    def sweep(self, nodes: Nodes) -> None:
        """Ends every process of the run that is still there, after its agents are gone."""
