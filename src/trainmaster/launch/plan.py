"""From a JobSpec and its nodes to the plans the node agents carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.environments.containers import Container
from trainmaster.errors import TrainingException
from trainmaster.job import JobSpec


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


@dataclass(frozen=True)
class ProcessPlan:
    """One process."""

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log: str


@dataclass(frozen=True)
class NodePlan:
    """The processes of one node."""

    node: int
    processes: tuple[ProcessPlan, ...]


Planner = Callable[[JobSpec, Launch], tuple[NodePlan, ...]]


def plan_launch(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """The plan of every node of the run."""
    plans = planner(spec)(spec, launch)
    if spec.environment.container is None or launch.container is None:
        return plans
    from trainmaster.launch.container import in_containers

    return in_containers(plans, spec, launch, spec.environment.container, launch.container)


def planner(spec: JobSpec) -> Planner:
    """The planner for the spec's kind of distribution; an error that says so if there is none yet."""
    from trainmaster.launch.single import plan_single

    planners: dict[str, Planner] = {"single": plan_single}
    chosen = planners.get(spec.distribution.kind)
    if chosen is None:
        raise TrainingException(
            f"distributed training ({spec.distribution.kind}) is not in this release",
            hint="Leave out distributed_training and distributed_backend to run on one node with one process.",
        )
    return chosen
