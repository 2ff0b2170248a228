"""torch.distributed: the processes are started directly, with the variables that torchrun would set."""

from __future__ import annotations

from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.ranks import processes_on_machine, rank_variables
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec

# The same as torchrun for processes that share a machine: otherwise each would use all cores, and they would mostly
# wait for each other. The user's value has precedence.
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# What 'accelerate launch' sets if it is told nothing else.
_ACCELERATE = {"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_DYNAMO_BACKEND": "no", "ACCELERATE_USE_CPU": "false"}
# What 'accelerate launch --cpu' sets, and what DeepSpeed would find out with a warning. Without the first one, every
# process of Accelerate would train alone.
_NO_GPU = {"ACCELERATE_USE_CPU": "true", "DS_ACCELERATOR": "cpu"}


def plan_torch(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """The same number of processes on every node."""
    return tuple(_node(spec, launch, node) for node in range(spec.node_count))


def _node(spec: JobSpec, launch: Launch, node: int) -> NodePlan:
    count = (spec.distribution.process_count or spec.node_count) // spec.node_count
    return NodePlan(node, tuple(_process(spec, launch, node, local, count) for local in range(count)))


def _process(spec: JobSpec, launch: Launch, node: int, local: int, count: int) -> ProcessPlan:
    rank, world = node * count + local, spec.node_count * count
    has_gpus = bool(launch.gpus[node]) or spec.distribution.backend != "gloo"
    variables = {
        **_ACCELERATE,
        **({} if has_gpus else _NO_GPU),
        **(_ONE_THREAD if processes_on_machine(launch, node, count) > 1 else {}),
        **process_variables(spec, launch, rank=rank, node=node, gpus=share_of_gpus(launch.gpus[node], local, count)),
        **rank_variables(launch, rank=rank, world=world, local=local, per_node=count),
        **_torchrun_variables(spec, launch, rank, world),
        **_make_deepspeed_variables(spec, node, count),
        # Set by v1's helper classes: a file that all processes see.
        "AZ_BATCHAI_PYTORCH_INIT_METHOD": f"file://{launch.node_folder}/torch_init",
    }
    return ProcessPlan(
        rank=rank,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(rank, world)}",
    )


def _torchrun_variables(spec: JobSpec, launch: Launch, rank: int, world: int) -> dict[str, str]:
    """Further variables of torchrun: one role, and one group of processes per node."""
    return {
        "GROUP_WORLD_SIZE": str(spec.node_count),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world),
        "TORCHELASTIC_RUN_ID": launch.run_id,
        "TORCHELASTIC_RESTART_COUNT": str(int(launch.run_variables.get("TRAINMASTER_ATTEMPT", "1")) - 1),
        "TORCHELASTIC_MAX_RESTARTS": str(spec.max_retries),
    }


def _make_deepspeed_variables(spec: JobSpec, node: int, count: int) -> dict[str, str]:
    """Further variables of DeepSpeed's launcher, in which nodes have the names that Horovod has for them."""
    return {"CROSS_RANK": str(node), "CROSS_SIZE": str(spec.node_count), "LOCAL_SIZE": str(count)}
