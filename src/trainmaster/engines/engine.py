"""What an engine does for the dispatcher (docs/internals/engines.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import RunError, Status, TargetRecord


async def refuse_files(paths: Sequence[str]) -> list[str]:
    """For engines that cannot bring files to a running script."""
    raise ComputeTargetException(
        f"{', '.join(paths)[:300]} cannot be brought to the machine of a running script",
        hint="Give it to the run as data: dataset.as_named_input('name'), or a data reference.",
    )


@dataclass(frozen=True)
class JobRequest:
    """A request of a script to its workspace, from a machine that cannot reach the dispatcher."""

    run_id: str
    name: str
    """Distinguishes it from other requests of the run."""
    text: bytes
    answer: Callable[[bytes], Awaitable[None]]
    """Puts the answer where the script looks for it, and removes the request."""
    bring: Callable[[Sequence[str]], Awaitable[list[str]]] = refuse_files
    """Brings files, folders and what matches patterns to the machine of the script; returns their paths there."""
    shares_files: bool = False
    """Whether that machine sees folders of this one."""


@dataclass(frozen=True)
class EngineContext:
    """What an engine is created with."""

    folder: WorkspaceFolder
    on_event: Callable[[str, str], None]
    """Called with a run's id and "running" or "done", for agents that cannot reach the dispatcher."""
    secret: Callable[[str], str | None] = lambda name: None
    """Returns a secret of the workspace, such as the password of a host."""
    on_request: Callable[[JobRequest], None] = lambda request: None
    """Has a job request answered. Passing on the same request twice is harmless."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of one attempt of a run: what an engine needs to start, find, stop and clean up after it."""

    run_id: str
    folder: RunFolder
    count: int
    """How many of its nodes have an agent: all, or only the first one if mpirun reaches the others."""
    target: TargetRecord
    numbers: tuple[int, ...]
    """The numbers of its nodes in the target, in the order of the run's nodes."""
    processes_per_node: int = 1
    seconds: int | None = None
    """The time limit of the run, if it has one."""
    priority: int = 0
    """The priority of the run, for engines with a queue of their own."""


@dataclass(frozen=True)
class Place:
    """What a launch plan needs to know about the nodes. Texts may be tokens (`job/agent/tokens.py`)."""

    hosts: tuple[str, ...]
    """For each node, the name or address under which the others reach it."""
    gpus: tuple[tuple[str, ...], ...]
    """The GPUs of each node."""
    cpus: int
    """The CPUs of one node's machine; 0 if unknown."""
    python: str
    """The Python for the agent and our small programs, on the nodes."""
    mpi_options: tuple[str, ...] = ()
    """The options with which mpirun reaches the other nodes."""
    mpi_inherits: tuple[str, ...] = ()
    """The prefixes of the agent's variables that mpirun needs to reach them."""
    hosts_file: str = ""
    """The file with the values of the tokens, once there are nodes; empty if there are no tokens."""
    reaches_dispatcher: bool = True
    """Whether agents can notify the dispatcher. If not, the engine reads their files and calls `on_event`."""
    limits: tuple[Mapping[str, int | None], ...] = ()
    """What the processes of each agent may use, for `plan.json`; empty without limits."""
    relays_requests: bool = False
    """Whether scripts cannot reach the dispatcher, so that the engine passes on their requests (`on_request`)."""


@dataclass(frozen=True)
class Ending:
    """How the nodes of a run ended, if the engine knows it better than the agents."""

    status: Status
    error: RunError | None = None
    again: bool = False
    """Whether the run is not at fault, so that it is tried again regardless of `max_retries`."""


class FewerNodesError(Exception):
    """The nodes of an elastic run are not all available, but enough of them are. No agent was started.

    `Engine.start` of an engine with a queue of its own raises it, and is called again with the plans of `count` nodes.
    """

    def __init__(self, count: int) -> None:
        super().__init__(f"only {count} nodes are available")
        self.count = count


class Engine(Protocol):
    """Starts the node agents of a run, all or none, and notices when they end.

    The agents' files (plan, claim, result) are the truth; an engine only starts agents and watches them. All methods
    work for a run that an earlier dispatcher started, and may be called twice.
    """

    queues: bool
    """Whether the engine has a queue of its own. Then the dispatcher's queue does not wait for free nodes."""
    shares_files: bool
    """Whether the nodes see the workspace's folder under its path."""
    # uploads_folders: bool
    # Optional, False if it is missing: whether the engine brings the working folder of a resumed run to its nodes.
    runs_here: bool
    """Whether the nodes are this machine: they have its container images and reach the dispatcher's socket."""

    def place(self, nodes: Nodes) -> Place:
        """Returns what the plans of this run are made with. Starts and queries nothing."""

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        """Starts or queues an agent for every plan. Starting twice is harmless: the claim decides.

        May raise FewerNodesError for an elastic run.
        """

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        """Returns when the agent of node `number` has ended and everything it wrote is in the run's folder."""

    async def stop(self, nodes: Nodes) -> None:
        """Asks the agents to end their processes (they know the grace time). Finished agents are ignored."""

    async def kill(self, nodes: Nodes) -> None:
        """Kills agents that do not answer; `sweep` ends what they leave."""

    async def sweep(self, nodes: Nodes) -> None:
        """Ends every remaining process of the run, after its agents have ended."""

    def waiting_for(self, nodes: Nodes) -> str:
        """Returns a sentence while its agents have not started; otherwise an empty text."""

    async def ending(self, nodes: Nodes) -> Ending | None:
        """Returns why its nodes were taken away, if known. Called after the agents have ended."""

    async def find_unreachable(self, nodes: Nodes) -> frozenset[int]:
        """Returns which nodes cannot be used now, as places in `nodes.numbers`. Asked before an attempt that may do
        without them."""

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        """Removes what the engine keeps for this attempt elsewhere.

        Returns properties for the run, whose names start with that of the engine.
        """

    async def close(self) -> None:
        """The dispatcher ends; agents continue."""
