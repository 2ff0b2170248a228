"""What a plan is made from, and the plans of nodes and processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.environments.containers import Container


@dataclass(frozen=True)
class Launch:
    """What a plan is made from, besides the job specification: everything that is decided when a run starts."""

    run_id: str
    code_folder: str
    log_folder: str
    python: str
    """The interpreter of the script."""
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment (PATH with its bin folder, VIRTUAL_ENV)."""
    run_variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the run: TRAINMASTER_*, AZUREML_*, data references."""
    gpus: Sequence[Sequence[str]] = ((),)
    """The GPUs of each node of the run."""
    container: Container | None = None
    """What its processes run in, if the specification names an image."""
    hosts: Sequence[str] = ("127.0.0.1",)
    """For each node of the run, the name or address under which the others reach it."""
    cpus: int = 0
    """The number of CPUs of a node's machine; 0 if unknown."""
    ports: Sequence[int] = ()
    """As many ports as `port_count` says. No other run uses them on these nodes."""
    node_folder: str = ""
    """The folder of the first node's agent."""
    kit: str = ""
    """The folder of the kit."""
    rank_python: str = "python3"
    """The Python for our own small programs beside the script."""
    fills_in: bool = False
    """Whether unknown values may be tokens, which the nodes replace."""
    mpi_options: Sequence[str] = ()
    """The options with which mpirun reaches the other nodes."""
    mpi_inherits: Sequence[str] = ()
    """The prefixes of the variables that mpirun needs from its agent."""


@dataclass(frozen=True)
class ProcessPlan:
    """One process."""

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log: str
    service: bool = False
    """Whether it never ends by itself: it is ended when the others have ended successfully."""
    inherits: tuple[str, ...] = ()
    """It also gets the variables of its agent that start with one of these prefixes."""
    remove: tuple[str, ...] = ()
    """For a process in a container: the command that removes the container."""


@dataclass(frozen=True)
class NodePlan:
    """The processes of one node."""

    node: int
    processes: tuple[ProcessPlan, ...]
    ranks: tuple[ProcessPlan, ...] = ()
    """Under MPI: what the processes that mpirun starts become, by their rank."""
