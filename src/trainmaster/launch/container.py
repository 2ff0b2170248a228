"""The processes of a plan, each in a container of the run's image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainmaster.environments.containers import Container, inside
from trainmaster.job.agent.tree import NODE_VARIABLE, node_marker
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.shared.job_spec import ContainerSpec, JobSpec


def in_containers(
    plans: tuple[NodePlan, ...], spec: JobSpec, launch: Launch, image: ContainerSpec, container: Container
) -> tuple[NodePlan, ...]:
    """The same plans, with every process wrapped. Those that mpirun starts are in its container, with its variables."""

    attempt = launch.run_variables.get("TRAINMASTER_ATTEMPT", "1")

    def wrapped(node: int, process: ProcessPlan, gpus: bool) -> ProcessPlan:
        # Not the child of any process of ours with some engines: its agent finds it by this variable.
        env = {**process.env, NODE_VARIABLE: node_marker(launch.run_id, node)}
        name = f"trainmaster-{launch.run_id}-{attempt}-{process.rank}"
        command = inside(container, image, name, process.argv, env, process.cwd, seen_inside(env, spec, launch), gpus)
        return replace(process, argv=command.argv, env=command.env, remove=command.remove)

    def in_wrapped(rank: ProcessPlan) -> ProcessPlan:
        return replace(rank, env={name: rank.env[name] for name in seen_inside(rank.env, spec, launch)}, inherits=("",))

    def whole(plan: NodePlan) -> NodePlan:
        gpus = any(process.env.get("CUDA_VISIBLE_DEVICES") for process in (*plan.processes, *plan.ranks))
        return replace(
            plan,
            processes=tuple(wrapped(plan.node, process, gpus) for process in plan.processes),
            ranks=tuple(map(in_wrapped, plan.ranks)),
        )

    return tuple(map(whole, plans))


def seen_inside(env: Mapping[str, str], spec: JobSpec, launch: Launch) -> list[str]:
    """The variables a process sees in its container: all but those that describe the machine outside."""
    of_machine = {*spec.inherited_variables} - {*spec.environment_variables, *launch.run_variables}
    return sorted(name for name in env if name not in of_machine or name.lower().endswith("_proxy"))
