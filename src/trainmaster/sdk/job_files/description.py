"""JobDescription: a job as options and job files describe it, before any file of it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.shared.job_spec import DataBinding, DataMode, DatasetOutput, InputMode

DISTRIBUTIONS = ("mpi", "gloo", "nccl", "ps")
DEFAULT_ENVIRONMENT = "command-line"
FRAMEWORKS = ("pytorch", "tensorflow", "sklearn", "chainer")


@dataclass(frozen=True)
class Dataset:
    """A dataset of the workspace as an input: by name and version, or by id."""

    name: str = ""
    version: str = ""
    id: str = ""
    mode: InputMode = "direct"
    path_on_compute: str = ""


@dataclass(frozen=True)
class Details:
    """What no option says: settings of programs, which `run.to_job_file` writes so that nothing is lost."""

    environment_name: str = ""
    optional_packages: tuple[str, ...] = ()
    horovod: str = ""
    open_mpi: bool = False
    framework: str = ""
    communicator: str = ""
    process_count: int | None = None
    lock: str = ""


@dataclass(frozen=True)
class JobDescription:
    """The values of all keys of a job file; empty means that a key is not given. Paths are those of this machine."""

    folder: str = "."
    script: str = ""
    module: str = ""
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    experiment: str = ""
    name: str = ""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    target: str = ""
    nodes: int = 1
    processes_per_node: int = 1
    distributed: str = ""
    """One of DISTRIBUTIONS; `ps` with its numbers of workers and servers: `ps 2:1`."""
    min_nodes: int | None = None
    wait_seconds: int | None = None
    gpu: bool = False
    vm_size: str = ""
    vm_priority: str = ""
    framework: str = ""
    """One of FRAMEWORKS, alone or with a release: `pytorch=2.13`."""
    pip: tuple[str, ...] = ()
    pip_file: str = ""
    conda: tuple[str, ...] = ()
    conda_file: str = ""
    conda_channels: tuple[str, ...] = ()
    python_version: str = ""
    accelerator: str = ""
    exclude_newer: str = ""
    python: str = ""
    user_managed: bool = False
    environment: str = ""
    """A registered environment, with or without a version: `mine:3`."""
    image: str = ""
    shm_size: str = ""
    image_arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[DataBinding, ...] = ()
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    outputs: tuple[DatasetOutput, ...] = ()
    resume_from: str = ""
    max_seconds: int | None = None
    max_retries: int = 0
    hang_seconds: float | None = None
    priority: int = 0
    details: Details = field(default_factory=Details)


def split_place(text: str) -> tuple[str, str, str]:
    """Datastore, path and mode of a text such as `store/folder@download`; the mode may be empty.

    >>> split_place("blobs/mnist/train"), split_place("blobs@download"), split_place("blobs/a@b")
    (('blobs', 'mnist/train', ''), ('blobs', '', 'download'), ('blobs', 'a@b', ''))
    """
    before, sign, mode = text.rpartition("@")
    if not sign or mode not in ("mount", "download", "upload", "direct"):
        before, mode = text, ""
    store, _, path = before.partition("/")
    return store, path, mode


def read_input(name: str, text: str) -> DataBinding:
    """An input that is written as one text.

    >>> read_input("data", "blobs/mnist@download")
    DataBinding(name='data', datastore='blobs', path='mnist', mode='download', path_on_compute='', overwrite=False)
    """
    store, path, mode = split_place(text)
    kind: DataMode = "download" if mode == "download" else "upload" if mode == "upload" else "mount"
    return DataBinding(name, store, path, kind)


def read_dataset(text: str) -> Dataset:
    """A dataset that is written as one text.

    >>> read_dataset("mnist:3@mount")
    Dataset(name='mnist', version='3', id='', mode='mount', path_on_compute='')
    """
    before, sign, mode = text.rpartition("@")
    if not sign or mode not in ("mount", "download", "direct"):
        before, mode = text, "direct"
    name, _, version = before.partition(":")
    kind: InputMode = "mount" if mode == "mount" else "download" if mode == "download" else "direct"
    return Dataset(name, version, mode=kind)


def read_output(name: str, text: str) -> DatasetOutput:
    """An output that is written as one text: `blobs/results`, `blobs/results@upload`."""
    store, path, mode = split_place(text)
    return DatasetOutput(name, store, path, "upload" if mode == "upload" else "mount")
