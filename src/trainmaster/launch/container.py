"""The processes of a plan, each in a container of the run's image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainmaster.environments.containers import Container, inside
from trainmaster.job import ContainerSpec, JobSpec
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan


def in_containers(
    plans: tuple[NodePlan, ...], spec: JobSpec, launch: Launch, image: ContainerSpec, container: Container
) -> tuple[NodePlan, ...]:
    """The same plans, with every process wrapped."""

    def wrapped(process: ProcessPlan) -> ProcessPlan:
        name = f"trainmaster-{launch.run_id}-{process.rank}"
        passed = seen_inside(process.env, spec, launch)
        command = inside(container, image, name, process.argv, process.env, process.cwd, passed)
        return replace(process, argv=command.argv, env=command.env)

    return tuple(replace(plan, processes=tuple(map(wrapped, plan.processes))) for plan in plans)


def seen_inside(env: Mapping[str, str], spec: JobSpec, launch: Launch) -> list[str]:
    """The variables a process sees in its container: all but those that describe the machine outside."""
    own = {*spec.environment_variables, *launch.run_variables}
    of_machine = {*spec.inherited_variables, *launch.environment_variables} - own
    return sorted(name for name in env if name not in of_machine or name.lower().endswith("_proxy"))
