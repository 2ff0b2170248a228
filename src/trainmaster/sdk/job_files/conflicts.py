"""Settings of a job that exclude or need each other. All conflicts are reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.job_files.description import JobDescription
from trainmaster.sdk.job_files.keys import BY_NAME
from trainmaster.sdk.job_files.reading import split_distributed, split_framework
from trainmaster.sdk.job_files.values import alternatives

_FITTING = {"pytorch": ("mpi", "gloo", "nccl"), "tensorflow": ("mpi", "ps"), "chainer": ("mpi",), "sklearn": ()}
_OWN_PYTHON = ("python", "user_managed")
_PACKAGES = ("pip", "pip_file", "conda", "conda_file", "conda_channels", "python_version", "accelerator",
             "exclude_newer")  # fmt: skip


class Names:
    """What the user calls a key: by itself in a file, by its option on the command line."""

    def __init__(self, as_options: bool) -> None:
        self.as_options = as_options

    def __call__(self, key: str) -> str:
        return BY_NAME[key].on_command_line if self.as_options else key


class JobConflicts(UserErrorException):
    """Several conflicts between the settings of one job."""

    def __init__(self, conflicts: Sequence[UserErrorException]) -> None:
        lines = [line for each in conflicts for line in (each.headline, *(f"  {more}" for more in _explain(each)))]
        super().__init__(f"{len(conflicts)} settings do not fit the others", cause="\n".join(lines))
        self.conflicts = tuple(conflicts)


def _explain(error: UserErrorException) -> list[str]:
    return [line for text in (error.cause, error.hint) for line in text.splitlines() if line]


def check_together(job: JobDescription, names: Names) -> None:
    """Raises an error for settings that exclude or need each other: one as it is, several as a list."""
    found = [*_find_python_conflicts(job, names), *_find_process_conflicts(job, names)]
    if len(found) == 1:
        raise found[0]
    if found:
        raise JobConflicts(found)


def _find_python_conflicts(job: JobDescription, names: Names) -> Iterator[UserErrorException]:
    given = [name for name in (*_OWN_PYTHON, "framework", *_PACKAGES, "image", "shm_size") if getattr(job, name)]
    own = next((name for name in _OWN_PYTHON if name in given), "")
    packages = next((name for name in ("framework", *_PACKAGES) if name in given), "")
    if own and packages:
        yield UserErrorException(
            f"{names(packages)} cannot be given together with {names(own)}",
            hint="A Python that you manage is not changed: install the packages there yourself.",
        )
    if job.environment and given:
        yield UserErrorException(
            f"{names('environment')} cannot be given together with {names(given[0])}",
            hint="A registered environment has its own packages and image. Leave one of them out.",
        )
    listed = next((name for name in ("framework", "pip", "pip_file", "conda") if name in given), "")
    if job.conda_file and listed:
        yield UserErrorException(
            f"{names('conda_file')} cannot be given together with {names(listed)}",
            hint="The file lists all packages: add them there.",
        )
    if (job.shm_size or job.image_arguments) and not job.image:
        name = "shm_size" if job.shm_size else "image_arguments"
        yield UserErrorException(
            f"{names(name)} needs {names('image')}", hint="Without an image the run uses no container."
        )
    if job.framework and job.accelerator:
        yield UserErrorException(
            f"{names('accelerator')} cannot be given together with {names('framework')}",
            hint=f"A framework is built for the CPU, or with {names('gpu')} for GPUs.",
        )


def _find_process_conflicts(job: JobDescription, names: Names) -> Iterator[UserErrorException]:
    if job.min_nodes is not None and job.distributed not in ("gloo", "nccl"):
        shown = "--gloo or --nccl" if names.as_options else "distributed: gloo or nccl"
        yield UserErrorException(f"{names('min_nodes')} needs {shown}", hint="Only torch's own processes are elastic.")
    if job.wait_seconds is not None and job.min_nodes is None:
        yield UserErrorException(
            f"{names('wait_seconds')} needs {names('min_nodes')}",
            hint="Without it the run always waits for all its nodes.",
        )
    if job.distributed:
        yield from _find_distribution_conflicts(job, names)
    elif (job.nodes > 1 or job.processes_per_node > 1) and not job.details.communicator:
        yield UserErrorException(
            f"{names('nodes' if job.nodes > 1 else 'processes_per_node')} needs {names('distributed')}",
            cause="Several processes have to find each other.",
            hint="mpi is for Horovod and mpi4py, gloo and nccl for torch.distributed, ps for TensorFlow.",
        )


def _find_distribution_conflicts(job: JobDescription, names: Names) -> Iterator[UserErrorException]:
    kind = split_distributed(job.distributed)[0]
    if kind == "ps" and job.processes_per_node > 1:
        yield UserErrorException(
            f"{names('processes_per_node')} cannot be given together with ps",
            hint="Workers and servers are distributed evenly over the nodes.",
        )
    framework = split_framework(job.framework)[0] if job.framework else ""
    fitting = _FITTING.get(framework, (kind,))
    if kind not in fitting:
        shown = alternatives([f"--{each}" if names.as_options else each for each in fitting]) or "one process"
        yield UserErrorException(
            f"{f'--{kind}' if names.as_options else f'distributed: {kind}'} cannot be used with "
            f"{names('framework')} {framework}",
            hint=f"{framework} runs with {shown}.",
        )
