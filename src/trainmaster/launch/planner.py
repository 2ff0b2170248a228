"""From a JobSpec and its nodes to the plans that the node agents execute."""

from __future__ import annotations

from collections.abc import Callable

from trainmaster.launch.container import wrap_plans
from trainmaster.launch.mpi import plan_mpi
from trainmaster.launch.parameter_server import plan_parameter_server
from trainmaster.launch.plan import Launch, NodePlan
from trainmaster.launch.single import plan_single
from trainmaster.launch.torch import plan_torch
from trainmaster.shared.job_spec import JobSpec

Planner = Callable[[JobSpec, Launch], tuple[NodePlan, ...]]
"""Plans one kind of distribution. Pure."""

PLANNERS: dict[str, Planner] = {
    "single": plan_single,
    "mpi": plan_mpi,
    "torch": plan_torch,
    "parameter_server": plan_parameter_server,
}
"""By the kind of distribution."""


def plan_launch(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """The plan of every node that has an agent."""
    plans = PLANNERS[spec.distribution.kind](spec, launch)
    if spec.environment.container is None or launch.container is None:
        return plans
    return wrap_plans(plans, spec, launch, spec.environment.container, launch.container)
