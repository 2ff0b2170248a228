"""What an engine does for the dispatcher (docs/internals/engines.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import RunError, Status, TargetRecord


async def bring_nothing(paths: Sequence[str]) -> list[str]:
    """Of an engine that does not bring files to a script that runs already."""
    raise ComputeTargetException(
        f"{', '.join(paths)[:300]} cannot be brought to the machine of the script while it runs",
        hint="Give it to the run as data: dataset.as_named_input('name'), or a data reference.",
    )


@dataclass(frozen=True)
class JobRequest:
    """What a script asks its workspace, on a machine from where the dispatcher cannot be reached."""

    run_id: str
    name: str
    """Tells it from the run's other letters."""
    text: bytes
    answer: Callable[[bytes], Awaitable[None]]
    """Puts the answer where the script looks for it, and takes the letter away."""
    bring: Callable[[Sequence[str]], Awaitable[list[str]]] = bring_nothing
    """Brings files, folders and what fits patterns to the machine of the script; says under which paths."""
    shares_files: bool = False
    """Whether that machine sees folders of this one."""


@dataclass(frozen=True)
class EngineContext:
    """What an engine is made with."""

    folder: WorkspaceFolder
    heard: Callable[[str, str], None]
    """`heard(run_id, "running")`, `heard(run_id, "done")`: what agents that cannot reach the dispatcher would tell."""
    secret: Callable[[str], str | None] = lambda name: None
    """A secret of the workspace by its name, such as the password of a host."""
    asked: Callable[[JobRequest], None] = lambda letter: None
    """Has a letter answered; one that is passed on twice does no harm."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of one attempt of a run: what an engine needs to start, find, stop and clean up after it."""

    run_id: str
    folder: RunFolder
    count: int
    """How many of its nodes have an agent: all, or the first one only, where mpirun reaches the others."""
    target: TargetRecord
    numbers: tuple[int, ...]
    """Which nodes of the target it has, in the order of its own nodes."""
    processes_per_node: int = 1
    seconds: int | None = None
    """How long the run may take, where it says so."""


@dataclass(frozen=True)
class Place:
    """What a launch plan needs to know of the nodes. Texts may be tokens (`job/agent/tokens.py`)."""

    hosts: tuple[str, ...]
    """For each node, the name or address under which the others reach it."""
    gpus: tuple[tuple[str, ...], ...]
    """For each node, its GPUs."""
    cpus: int
    """Of one node's machine; 0 if that is not known."""
    python: str
    """The Python for the agent and our small programs, on the nodes."""
    mpi_options: tuple[str, ...] = ()
    """By which mpirun reaches the other nodes."""
    mpi_inherits: tuple[str, ...] = ()
    """The variables of the agent that mpirun needs there: how their names begin."""
    hosts_file: str = ""
    """Where the names for the tokens are found, once there are nodes; empty if there are no tokens."""
    reaches_dispatcher: bool = True
    """Whether agents can tell the dispatcher themselves. If not, the engine looks at their files, and tells."""
    relays_requests: bool = False
    """Whether scripts cannot ask the dispatcher themselves, and the engine passes on what they ask (`asked`)."""


@dataclass(frozen=True)
class Ending:
    """How an engine says that its nodes ended, where the agents cannot know or can no longer say."""

    status: Status
    error: RunError | None = None
    again: bool = False
    """Whether it is no fault of the run, so that the next attempt follows whatever `max_retries` says."""


class Engine(Protocol):
    """Starts the node agents of a run, all or none, and tells when they are gone.

    The agents' files (plan, claim, result) are the truth; an engine only brings agents to life and watches them. All
    of it works for a run started by an earlier dispatcher, and may be done twice.
    """

    queues: bool
    """Whether runs wait for nodes in a queue of the engine's own. Then ours holds none back for lack of nodes."""
    shares_files: bool
    """Whether the nodes see the workspace's folder under its path."""
    runs_here: bool
    """Whether the nodes are this machine: they have its container images and reach the dispatcher's socket."""

    def place(self, nodes: Nodes) -> Place:
        """What the plans of this run are made with. Nothing is started, and nobody asked."""

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        """Starts an agent for every plan, or has it queued. Starting twice is harmless: the claim decides."""

    async def ended(self, nodes: Nodes, number: int) -> None:
        """Returns when the agent of node `number` does not live and all it wrote is in the run's folder."""

    async def stop(self, nodes: Nodes) -> None:
        """Asks the agents to end their processes (they know the grace time). Those that have ended are no matter."""

    async def kill(self, nodes: Nodes) -> None:
        """Ends agents that do not answer, at once; what they leave is for `sweep`."""

    async def sweep(self, nodes: Nodes) -> None:
        """Ends every process of the run that is still there, after its agents are gone."""

    def waiting_for(self, nodes: Nodes) -> str:
        """A sentence while its agents are not there yet; else empty."""

    async def ending(self, nodes: Nodes) -> Ending | None:
        """Why its nodes were taken away, if that is known; asked after the agents are gone."""

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        """Removes what the engine keeps for this attempt elsewhere. Returns properties for the run, by names that begin
        with the engine's.
        """

    async def close(self) -> None:
        """The dispatcher ends; agents go on."""
