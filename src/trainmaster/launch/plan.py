"""From a JobSpec and its nodes to the plans the node agents carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.environments.containers import Container
from trainmaster.shared.job_spec import JobSpec


@dataclass(frozen=True)
class Launch:
    """What a plan is made from besides the spec: everything already decided when a run starts."""

    run_id: str
    code_folder: str
    log_folder: str
    python: str
    """The interpreter the script runs with."""
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment (PATH with its bin folder, VIRTUAL_ENV)."""
    run_variables: Mapping[str, str] = field(default_factory=dict)
    """Of the run: TRAINMASTER_*, AZUREML_*, data references."""
    gpus: Sequence[Sequence[str]] = ((),)
    """For each node of the run, the GPUs it has."""
    container: Container | None = None
    """What its processes run in, when the spec names an image."""
    hosts: Sequence[str] = ("127.0.0.1",)
    """For each node of the run, the name or address under which the others reach it."""
    cpus: int = 0
    """How many CPUs the machine of a node has; 0 if that is not known."""
    ports: Sequence[int] = ()
    """As many as `port_count` asked for: nobody else on the nodes has them."""
    node_folder: str = ""
    """Where the agent of the first node keeps its files."""
    kit: str = ""
    """Where the job side of Trainmaster lies."""
    rank_python: str = "python3"
    """The Python for our own small programs beside the script."""
    fills_in: bool = False
    """Whether what is not known yet may be a token, which is filled in on the nodes."""
    mpi_options: Sequence[str] = ()
    """By which mpirun reaches the other nodes."""
    mpi_inherits: Sequence[str] = ()
    """How the names of the variables begin that mpirun has to have from its agent."""


@dataclass(frozen=True)
class ProcessPlan:
    """One process."""

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log: str
    service: bool = False
    """Whether it never ends by itself: it is ended when the others have ended well."""
    inherits: tuple[str, ...] = ()
    """It also gets those variables of its agent whose names begin so."""
    remove: tuple[str, ...] = ()
    """For a process in a container: the command that takes that away."""


@dataclass(frozen=True)
class NodePlan:
    """The processes of one node."""

    node: int
    processes: tuple[ProcessPlan, ...]
    ranks: tuple[ProcessPlan, ...] = ()
    """Under MPI: what the processes that mpirun starts become, by their rank."""


Planner = Callable[[JobSpec, Launch], tuple[NodePlan, ...]]


def plan_launch(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """The plan of every node of the run."""
    plans = planner(spec)(spec, launch)
    if spec.environment.container is None or launch.container is None:
        return plans
    from trainmaster.launch.container import in_containers

    return in_containers(plans, spec, launch, spec.environment.container, launch.container)


def planner(spec: JobSpec) -> Planner:
    """The planner for the spec's kind of distribution."""
    from trainmaster.launch.mpi import plan_mpi
    from trainmaster.launch.parameter_server import plan_parameter_server
    from trainmaster.launch.single import plan_single
    from trainmaster.launch.torch import plan_torch

    planners: dict[str, Planner] = {
        "single": plan_single,
        "mpi": plan_mpi,
        "torch": plan_torch,
        "parameter_server": plan_parameter_server,
    }
    return planners[spec.distribution.kind]


def port_count(spec: JobSpec) -> int:
    """How many ports the processes of a run need to meet each other."""
    if spec.distribution.kind == "parameter_server":
        return spec.distribution.worker_count + spec.distribution.parameter_server_count
    return 0 if spec.distribution.kind == "single" else 1


def most_processes(spec: JobSpec) -> int:
    """The most processes of the script on one node."""
    if spec.distribution.kind == "mpi":
        return spec.distribution.process_count_per_node
    if spec.distribution.kind == "torch":
        return (spec.distribution.process_count or spec.node_count) // spec.node_count
    if spec.distribution.kind == "parameter_server":
        return -(-(spec.distribution.worker_count + spec.distribution.parameter_server_count) // spec.node_count)
    return 1


def agent_count(spec: JobSpec) -> int:
    """How many nodes have an agent: under MPI it is mpirun that reaches the others."""
    return 1 if spec.distribution.kind == "mpi" else spec.node_count
