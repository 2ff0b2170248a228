"""One process on one node."""

from __future__ import annotations

from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec


def plan_single(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """The script runs once, with all GPUs of its node."""
    gpus = share_of_gpus(launch.gpus[0], 0, 1)
    variables = process_variables(spec, launch, rank=0, node=0, gpus=gpus)
    process = ProcessPlan(
        rank=0,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(0, 1)}",
    )
    return (NodePlan(node=0, processes=(process,)),)
