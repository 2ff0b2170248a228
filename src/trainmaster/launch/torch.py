"""torch.distributed: the processes are started directly, with the variables that torchrun would give them."""

from __future__ import annotations

from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.ranks import rank_variables
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec

# As torchrun has it where several processes share a machine: each would take all cores, and they would mostly wait
# for each other. What the user says counts first.
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def plan_torch(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """The same number of processes on every node."""
    return tuple(_node(spec, launch, node) for node in range(spec.node_count))


def per_node(spec: JobSpec) -> int:
    """Processes on each node: one, unless the run says how many there are in all."""
    return (spec.distribution.process_count or spec.node_count) // spec.node_count


def _node(spec: JobSpec, launch: Launch, node: int) -> NodePlan:
    count = per_node(spec)
    return NodePlan(node, tuple(_process(spec, launch, node, local, count) for local in range(count)))


def _process(spec: JobSpec, launch: Launch, node: int, local: int, count: int) -> ProcessPlan:
    rank, world = node * count + local, spec.node_count * count
    variables = {
        **(_ONE_THREAD if _machine_mates(launch, node, count) > 1 else {}),
        **process_variables(spec, launch, rank=rank, node=node, gpus=share_of_gpus(launch.gpus[node], local, count)),
        **rank_variables(launch, rank=rank, world=world, local=local, per_node=count),
        **_of_torchrun(spec, launch, rank, world),
        # What v1's helper classes gave: a file that all processes see.
        "AZ_BATCHAI_PYTORCH_INIT_METHOD": f"file://{launch.node_folder}/torch_init",
    }
    return ProcessPlan(
        rank=rank,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(rank, world)}",
    )


def _machine_mates(launch: Launch, node: int, count: int) -> int:
    """How many processes of the run share a machine with those of this node: local nodes are parts of one."""
    return count * list(launch.hosts).count(launch.hosts[node])


def _of_torchrun(spec: JobSpec, launch: Launch, rank: int, world: int) -> dict[str, str]:
    """What scripts written for torchrun find besides their rank: one role, one group of processes per node."""
    return {
        "GROUP_WORLD_SIZE": str(spec.node_count),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world),
        "TORCHELASTIC_RUN_ID": launch.run_id,
        "TORCHELASTIC_RESTART_COUNT": str(int(launch.run_variables.get("TRAINMASTER_ATTEMPT", "1")) - 1),
        "TORCHELASTIC_MAX_RESTARTS": str(spec.max_retries),
    }
