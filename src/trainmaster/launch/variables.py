"""The environment variables of a process."""

from __future__ import annotations

from collections.abc import Sequence

from trainmaster.launch.plan import Launch
from trainmaster.shared.job_spec import JobSpec

# The user sets this variable to `node`: then every process sees all GPUs of its node and chooses by its LOCAL_RANK.
GPUS = "TRAINMASTER_GPUS"
HOSTFILE_VARIABLE = "TRAINMASTER_HOSTFILE"
# DeepSpeed's launcher passes on the variables in this file, besides a few that it knows.
DEEPSPEED_VARIABLE = "DS_ENV_FILE"


def process_variables(spec: JobSpec, launch: Launch, *, rank: int, node: int, gpus: Sequence[str]) -> dict[str, str]:
    """The variables of the submitter's shell, the environment, the user and the run; later ones have precedence."""
    variables = {
        **spec.inherited_variables,
        # Lines appear in the log when they are printed.
        "PYTHONUNBUFFERED": "1",
        # Lets the agent ask a process of a hanging run for its stacks.
        **({"PYTHONFAULTHANDLER": "1"} if spec.hang_seconds is not None else {}),
        **launch.environment_variables,
        **spec.environment_variables,
        **launch.run_variables,
        "TRAINMASTER_RANK": str(rank),
        "TRAINMASTER_NODE": str(node),
    }
    variables["PYTHONPATH"] = _join_paths(
        launch.run_variables.get("PYTHONPATH", ""), spec.environment_variables.get("PYTHONPATH", "")
    )
    if gpus and spec.environment_variables.get(GPUS) == "node":
        gpus = launch.gpus[node]
    if gpus or "CUDA_VISIBLE_DEVICES" not in spec.environment_variables:
        # Empty if its node has no GPUs: a process must not use GPUs that it was not given.
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return variables


def share_of_gpus(gpus: Sequence[str], local_rank: int, processes: int) -> tuple[str, ...]:
    """The GPUs of one of `processes` on a node: equal shares, or one GPU for several processes if there are too few.

    >>> share_of_gpus(["0", "1", "2", "3"], 1, 2)
    ('2', '3')
    >>> share_of_gpus(["0", "1"], 2, 4)
    ('0',)
    """
    if not gpus:
        return ()
    if processes >= len(gpus):
        return (gpus[local_rank % len(gpus)],)
    first = local_rank * len(gpus) // processes
    last = (local_rank + 1) * len(gpus) // processes
    return tuple(gpus[first:last])


def hostfile_variables(launch: Launch) -> dict[str, str]:
    """Where the files are.

    >>> hostfile_variables(Launch("r", "c", "l", "python", node_folder="/run/nodes/0"))["TRAINMASTER_HOSTFILE"]
    '/run/nodes/0/hostfile'
    """
    return {
        HOSTFILE_VARIABLE: f"{launch.node_folder}/hostfile",
        DEEPSPEED_VARIABLE: f"{launch.node_folder}/deepspeed_env",
    }


def _join_paths(*paths: str) -> str:
    return ":".join(path for path in paths if path)
