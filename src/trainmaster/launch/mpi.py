"""MPI: mpirun on the first node starts the ranks; each becomes the process that is planned for it here."""

from __future__ import annotations

import os

from trainmaster.job.agent.tokens import threads_token
from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.ranks import rank_variables
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec

# Open MPI refuses root unless it is told twice.
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# More ranks than cores are fine, no rank is tied to a core, and messages take the plain way, which starts faster.
_MAPPING = ("--map-by", "slot:OVERSUBSCRIBE")
_OPTIONS = ("--bind-to", "none", "--mca", "pml", "ob1")
# A rank that crashes says so itself; Open MPI and UCX would write C stacks of their own into its log.
_QUIET = {"OMPI_MCA_opal_signal": "", "UCX_HANDLE_ERRORS": "none"}


def plan_mpi(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """One launcher, and the ranks it starts."""
    ranks = tuple(_rank(spec, launch, rank) for rank in range(world_size(spec)))
    launcher = ProcessPlan(
        rank=0,
        argv=(_mpirun(launch.python), "-np", str(len(ranks)), *_reaching(launch), *_OPTIONS, *_rank_command(launch)),
        env={**_launcher_variables(spec, launch), **_AS_ROOT},
        cwd=launch.code_folder,
        log=f"{launch.node_folder}/mpirun.log",
        inherits=tuple(launch.mpi_inherits),
    )
    return (NodePlan(0, (launcher,), ranks),)


def _reaching(launch: Launch) -> tuple[str, ...]:
    """How ranks are dealt out to the nodes: as the engine says, or all to this machine."""
    own = tuple(launch.mpi_options)
    return own if "--map-by" in own else (*_MAPPING, *own)


def _launcher_variables(spec: JobSpec, launch: Launch) -> dict[str, str]:
    """As a rank has them, but mpirun is none: by that variable the processes of a rank are found."""
    # Where mpirun passes on what its node was given, it must have all of it.
    gpus = launch.gpus[0] if launch.mpi_inherits else ()
    variables = process_variables(spec, launch, rank=0, node=0, gpus=gpus)
    return {name: value for name, value in variables.items() if name != "TRAINMASTER_RANK"}


def world_size(spec: JobSpec) -> int:
    """All ranks."""
    return spec.node_count * spec.distribution.process_count_per_node


def _rank_command(launch: Launch) -> tuple[str, ...]:
    """What mpirun starts for every rank: a small program that becomes the planned process."""
    return (
        launch.rank_python,
        "-I",
        "-S",
        f"{launch.kit}/trainmaster/job/agent/rank.py",
        f"{launch.node_folder}/ranks.json",
    )


def _rank(spec: JobSpec, launch: Launch, rank: int) -> ProcessPlan:
    count = spec.distribution.process_count_per_node
    node, local = divmod(rank, count)
    variables = {
        **_QUIET,
        **_threads(launch, node, count),
        **process_variables(spec, launch, rank=rank, node=node, gpus=share_of_gpus(launch.gpus[node], local, count)),
        **rank_variables(launch, rank=rank, world=world_size(spec), local=local, per_node=count),
    }
    variables["PYTHONPATH"] = f"{launch.kit}/trainmaster/job/agent/mpi_site:{variables['PYTHONPATH']}".rstrip(":")
    return ProcessPlan(
        rank=rank,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(rank, world_size(spec))}",
    )


def _threads(launch: Launch, node: int, count: int) -> dict[str, str]:
    """Ranks that share a machine share its cores: none is tied to one, so each would take them all."""
    mates = count * list(launch.hosts).count(launch.hosts[node])
    if not launch.cpus and launch.fills_in and mates > 1:
        return {"OMP_NUM_THREADS": threads_token(mates)}
    return {"OMP_NUM_THREADS": str(max(1, launch.cpus // mates))} if launch.cpus and mates > 1 else {}


def _mpirun(python: str) -> str:
    """The environment's own, if it has one; else whatever PATH gives."""
    own = os.path.join(os.path.dirname(python), "mpirun")
    return own if os.path.exists(own) else "mpirun"
