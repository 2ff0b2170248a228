"""The variables of one of several equal processes: its rank, and how it reaches the others."""

from __future__ import annotations

from trainmaster.launch.plan import Launch
from trainmaster.launch.variables import hostfile_variables


def rank_variables(launch: Launch, *, rank: int, world: int, local: int, per_node: int) -> dict[str, str]:
    """torch's names, which other programs read too, and those of v1.

    >>> found = rank_variables(Launch("r", "c", "l", "python", hosts=("a", "b"), ports=(7000,)),
    ...                        rank=3, world=4, local=1, per_node=2)
    >>> found["MASTER_ADDR"], found["NODE_RANK"], found["AZ_BATCH_MASTER_NODE"]
    ('a', '1', 'a:7000')
    """
    master, port = launch.hosts[0], str(launch.ports[0])
    node = rank // per_node
    return {
        "MASTER_ADDR": master,
        "MASTER_PORT": port,
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(per_node),
        "NODE_RANK": str(node),
        "GROUP_RANK": str(node),
        **hostfile_variables(launch),
        "AZ_BATCH_MASTER_NODE": f"{master}:{port}",
        "AZ_BATCHAI_MPI_MASTER_NODE": master,
        "AZ_BATCHAI_TASK_INDEX": str(rank),
        "AZ_BATCHAI_TASK_TYPE": "worker",
        "AZ_BATCHAI_WORKER_HOSTS": ",".join(launch.hosts),
        "AZ_BATCHAI_NUM_GPUS": str(len(launch.gpus[node]) if node < len(launch.gpus) else 0),
        "AZ_BATCHAI_JOB_TEMP": launch.node_folder,
        "AZ_BATCHAI_SHARED_JOB_TEMP": launch.node_folder,
        "AZ_BATCHAI_STDOUTERR_DIR": launch.log_folder,
    }


def processes_on_machine(launch: Launch, node: int, count: int) -> int:
    """How many processes of the run share the machine of this node, with `count` on each node.

    Local nodes are parts of one machine.
    """
    return count * list(launch.hosts).count(launch.hosts[node])
