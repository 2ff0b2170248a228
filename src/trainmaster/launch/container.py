"""The processes of a plan, each in a container of the run's image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainmaster.environments.containers import Container, inside
from trainmaster.job.agent.tree import NODE_VARIABLE, node_marker
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.shared.job_spec import ContainerSpec, JobSpec


def wrap_plans(
    plans: tuple[NodePlan, ...], spec: JobSpec, launch: Launch, image: ContainerSpec, container: Container
) -> tuple[NodePlan, ...]:
    """The same plans with every process in a container. Ranks of mpirun run in its container, with its variables."""

    attempt = launch.run_variables.get("TRAINMASTER_ATTEMPT", "1")

    def wrap_process(node: int, process: ProcessPlan, gpus: bool) -> ProcessPlan:
        # With some engines the process is not a descendant of the agent, which finds it by this variable.
        env = {**process.env, NODE_VARIABLE: node_marker(launch.run_id, node)}
        name = f"trainmaster-{launch.run_id}-{attempt}-{process.rank}"
        visible = visible_variables(env, spec, launch)
        command = inside(container, image, name, process.argv, env, process.cwd, visible, gpus)
        return replace(process, argv=command.argv, env=command.env, remove=command.remove)

    def limit_rank(rank: ProcessPlan) -> ProcessPlan:
        visible = {name: rank.env[name] for name in visible_variables(rank.env, spec, launch)}
        return replace(rank, env=visible, inherits=("",))

    def wrap_node(plan: NodePlan) -> NodePlan:
        gpus = any(process.env.get("CUDA_VISIBLE_DEVICES") for process in (*plan.processes, *plan.ranks))
        return replace(
            plan,
            processes=tuple(wrap_process(plan.node, process, gpus) for process in plan.processes),
            ranks=tuple(map(limit_rank, plan.ranks)),
        )

    return tuple(map(wrap_node, plans))


def visible_variables(env: Mapping[str, str], spec: JobSpec, launch: Launch) -> list[str]:
    """The variables that a process sees in its container: all except those that describe the machine outside."""
    machine = {*spec.inherited_variables} - {*spec.environment_variables, *launch.run_variables}
    return sorted(name for name in env if name not in machine or name.lower().endswith("_proxy"))
