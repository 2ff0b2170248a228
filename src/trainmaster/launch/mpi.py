"""MPI: mpirun on the first node starts the ranks; each rank becomes the process that is planned for it here."""

from __future__ import annotations

import os

from trainmaster.job.agent.tokens import threads_token
from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.ranks import processes_on_machine, rank_variables
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec

# Open MPI runs as root only if both variables are set.
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Allows more ranks than cores, binds no rank to a core, and uses the simple message layer, which starts faster.
_MAPPING = ("--map-by", "slot:OVERSUBSCRIBE")
_OPTIONS = ("--bind-to", "none", "--mca", "pml", "ob1")
# Keeps Open MPI and UCX from writing C stacks into the log of a rank that crashes.
_QUIET = {"OMPI_MCA_opal_signal": "", "UCX_HANDLE_ERRORS": "none"}


def plan_mpi(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """One launcher, and the ranks it starts."""
    world = spec.node_count * spec.distribution.process_count_per_node
    ranks = tuple(_rank(spec, launch, rank, world) for rank in range(world))
    launcher = ProcessPlan(
        rank=0,
        argv=(_mpirun(launch.python), "-np", str(world), *_mapping(launch), *_OPTIONS, *_rank_command(launch)),
        env={**_launcher_variables(spec, launch), **_AS_ROOT},
        cwd=launch.code_folder,
        log=f"{launch.node_folder}/mpirun.log",
        inherits=tuple(launch.mpi_inherits),
    )
    return (NodePlan(0, (launcher,), ranks),)


def _mapping(launch: Launch) -> tuple[str, ...]:
    """How ranks are distributed to the nodes: as the engine says, or all to this machine."""
    options = tuple(launch.mpi_options)
    return options if "--map-by" in options else (*_MAPPING, *options)


def _launcher_variables(spec: JobSpec, launch: Launch) -> dict[str, str]:
    """The variables of a rank without TRAINMASTER_RANK, by which the processes of a rank are found."""
    # If mpirun passes on the GPUs of its node, it must have all of them.
    gpus = launch.gpus[0] if launch.mpi_inherits else ()
    variables = process_variables(spec, launch, rank=0, node=0, gpus=gpus)
    return {name: value for name, value in variables.items() if name != "TRAINMASTER_RANK"}


def _rank_command(launch: Launch) -> tuple[str, ...]:
    """The command of every rank: a small program that becomes the planned process."""
    return (
        launch.rank_python,
        "-I",
        "-S",
        f"{launch.kit}/trainmaster/job/agent/rank.py",
        f"{launch.node_folder}/ranks.json",
    )


def _rank(spec: JobSpec, launch: Launch, rank: int, world: int) -> ProcessPlan:
    count = spec.distribution.process_count_per_node
    node, local = divmod(rank, count)
    variables = {
        **_QUIET,
        **_threads(launch, node, count),
        **process_variables(spec, launch, rank=rank, node=node, gpus=share_of_gpus(launch.gpus[node], local, count)),
        **rank_variables(launch, rank=rank, world=world, local=local, per_node=count),
    }
    variables["PYTHONPATH"] = f"{launch.kit}/trainmaster/job/agent/mpi_site:{variables['PYTHONPATH']}".rstrip(":")
    return ProcessPlan(
        rank=rank,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(rank, world)}",
    )


def _threads(launch: Launch, node: int, count: int) -> dict[str, str]:
    """Ranks on one machine share its cores. As none is bound to a core, each would use all of them."""
    sharing = processes_on_machine(launch, node, count)
    if not launch.cpus and launch.fills_in and sharing > 1:
        return {"OMP_NUM_THREADS": threads_token(sharing)}
    return {"OMP_NUM_THREADS": str(max(1, launch.cpus // sharing))} if launch.cpus and sharing > 1 else {}


def _mpirun(python: str) -> str:
    """The environment's mpirun, if it has one; otherwise that of the PATH."""
    path = os.path.join(os.path.dirname(python), "mpirun")
    return path if os.path.exists(path) else "mpirun"
