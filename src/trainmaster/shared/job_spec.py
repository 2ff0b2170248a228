"""JobSpec: the frozen description of a run, the only thing that passes below the SDK."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

SPEC_VERSION = 1
THROW_AWAY = "amlcompute"
"""The target of a run that gets its own cluster."""
WAIT_SECONDS = 300
"""How long an elastic run waits for all its nodes, until it starts with fewer."""
MOST_PRIORITY = 100
"""Priorities are from minus this to this."""

DistributionKind = Literal["single", "mpi", "torch", "parameter_server"]
EntryKind = Literal["python", "module", "notebook", "program"]
DataMode = Literal["mount", "download", "upload"]
DatasetKind = Literal["file", "tabular"]
InputMode = Literal["mount", "download", "direct"]
OutputMode = Literal["mount", "upload"]
Accelerator = Literal["any", "cpu", "cuda"]


@dataclass(frozen=True)
class Distribution:
    """How the processes of a run find each other, and how many there are."""

    kind: DistributionKind = "single"
    process_count_per_node: int = 1
    backend: str = ""
    """`torch` only: gloo or nccl."""
    process_count: int | None = None
    """`torch` only: all processes of the run; none means one per node."""
    worker_count: int = 1
    parameter_server_count: int = 1
    min_nodes: int | None = None
    """`torch` only: when nodes are lost, the run goes on with the others if there are at least this many."""
    wait_seconds: int = WAIT_SECONDS
    """`min_nodes` only: how long the run waits for all its nodes, until it starts with fewer."""


@dataclass(frozen=True)
class ContainerSpec:
    """The image a script runs in."""

    image: str
    shm_size: str = ""
    """Size of the memory that processes share, such as 2g; empty means the engine's default."""
    arguments: tuple[str, ...] = ()
    """Further options for the engine."""


class ThisPython(str):
    """The path of this program's own Python, for a job whose user named none. Another machine may not have it."""

    __slots__ = ()


@dataclass(frozen=True)
class EnvironmentSpec:
    """What the script's Python has: the user's own interpreter, or a set of packages built once per digest."""

    user_managed: bool = False
    interpreter: str = ""
    """`user_managed` only: path of the Python; empty means the one that submitted."""
    python_version: str = ""
    """Major.minor of the Python to build with; empty means the one that submitted."""
    newer_python: bool = False
    """Whether a newer Python is taken where the packages cannot be installed for `python_version`."""
    pip_packages: tuple[str, ...] = ()
    """Requirements and pip's options, those of the framework included."""
    optional_packages: tuple[str, ...] = ()
    """Companions of torch that are installed if the sources have a build that fits; otherwise a warning says so."""
    conda_packages: tuple[str, ...] = ()
    conda_channels: tuple[str, ...] = ()
    """Empty means the configured default."""
    accelerator: Accelerator = "any"
    """Which builds of a framework are wanted: `cpu` never takes CUDA by accident, `any` takes what the sources give."""
    horovod: str = ""
    """The release of Horovod to build against the framework and Open MPI; empty for none."""
    open_mpi: bool = False
    """Whether Open MPI is part of it."""
    exclude_newer: str = ""
    """A date: releases after it are not taken (a cool-down against fresh malicious ones)."""
    container: ContainerSpec | None = None
    """None: on the machine itself."""
    lock: str = ""
    """The lock of an earlier build: exactly its packages are installed. Empty: the packages are resolved."""

    @property
    def is_of_image(self) -> bool:
        """Whether the Python and the packages are those of an image: one is named, and no packages for it are."""
        packages = (*self.conda_packages, *(line for line in self.pip_packages if not line.lstrip().startswith("-")))
        return self.container is not None and (self.user_managed or not packages)


@dataclass(frozen=True)
class DataBinding:
    """A path of a datastore that the script sees as `$AZUREML_DATAREFERENCE_<name>`."""

    name: str
    datastore: str
    path: str = ""
    mode: DataMode = "mount"
    path_on_compute: str = ""
    overwrite: bool = False


@dataclass(frozen=True)
class DataSource:
    """Files of a dataset: a path of a datastore with or without wildcards, a web address, or a path of this machine."""

    path: str
    store: str = ""
    """The datastore's name; empty: `path` is an address or an absolute path."""


@dataclass(frozen=True)
class DatasetDefinition:
    """What a dataset is: where its files lie, how they are read, and which of them, or of their rows, belong to it."""

    kind: DatasetKind
    sources: tuple[DataSource, ...]
    reader: Mapping[str, Any] = field(default_factory=dict)
    """`tabular` only: `format` and its options (`job/script/tables.py`)."""
    steps: tuple[Mapping[str, Any], ...] = ()
    """The steps applied to it, in order (`job/script/dataset_steps.py`). They run when the data is read."""


@dataclass(frozen=True)
class DatasetInput:
    """A dataset that the script sees as the variable `<name>`: a path, or its id with mode `direct`."""

    name: str
    dataset_id: str
    definition: DatasetDefinition
    mode: InputMode = "direct"
    path_on_compute: str = ""
    dataset_name: str = ""
    """The name and version it is registered by, if it is."""
    dataset_version: int | None = None


@dataclass(frozen=True)
class DatasetOutput:
    """A folder that the script writes to, seen as the variable `<name>`, and where that goes."""

    name: str
    datastore: str = ""
    """Empty means the default one."""
    path: str = ""
    """In the datastore; may have `{run-id}` and `{output-name}`."""
    mode: OutputMode = "mount"
    source: str = ""
    """The folder on the node; empty for one that is made for it."""
    overwrite: bool = False
    globs: tuple[str, ...] = ()
    """`upload` only: which of the files; empty for all."""
    register_as: str = ""
    """A dataset of this name is registered when the run has completed."""
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    reader: Mapping[str, Any] = field(default_factory=dict)
    """Not empty: it is registered as a dataset of tables that are read so."""


Binding = DataBinding | DatasetInput | DatasetOutput
"""What arguments and inputs of a run can stand for."""


@dataclass(frozen=True)
class JobSpec:
    """Everything needed to run a script once, on whichever machine."""

    source_directory: str
    target: str
    version: int = SPEC_VERSION
    script: str = ""
    """Relative to the source folder, or the name of a module; empty when `command` is given."""
    entry: EntryKind = "python"
    """What `script` is: a Python script, a module (`python -m`), a notebook, or a script for another program."""
    program: tuple[str, ...] = ()
    """`entry` "program" only: the program that runs the script, and its options, such as bash -e."""
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    node_count: int = 1
    distribution: Distribution = field(default_factory=Distribution)
    environment: EnvironmentSpec = field(default_factory=EnvironmentSpec)
    environment_name: str = ""
    environment_version: str = ""
    """The version it is registered as; empty for one that is not."""
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    """As the user specified it."""
    inherited_variables: Mapping[str, str] = field(default_factory=dict)
    """The few variables taken over from the submitting shell (PATH, HOME, LANG, ...)."""
    data: tuple[DataBinding, ...] = ()
    dataset_inputs: tuple[DatasetInput, ...] = ()
    dataset_outputs: tuple[DatasetOutput, ...] = ()
    max_run_duration_seconds: int | None = None
    max_retries: int = 0
    """How often a run that failed is started again in the same working folder."""
    hang_seconds: float | None = None
    """How long all processes may be silent (no output, no metric) until the run counts as hanging; None for ever."""
    priority: int = 0
    """Larger is earlier in the queue: one point counts like an hour of waiting."""
    framework: str = "Python"
    communicator: str = "None"
    use_gpu: bool = False
    vm_size: str = ""
    """The machine kind of the cluster that is made for this run, if the target is `THROW_AWAY`."""
    vm_priority: str = ""
    snapshot_id: str = ""
    """Set by submit, once the source folder is taken."""


def words_of(spec: JobSpec) -> list[str]:
    """What a job runs, as people write it: the command, or the script with its arguments.

    >>> words_of(JobSpec("", "local", script="train.py", arguments=("--lr", "0.1")))
    ['train.py', '--lr', '0.1']
    >>> words_of(JobSpec("", "local", script="package.train", entry="module"))
    ['-m', 'package.train']
    """
    before = {"module": ["-m"], "program": list(spec.program)}.get(spec.entry, [])
    return [*spec.command, *(before if spec.script else ()), *([spec.script] if spec.script else ()), *spec.arguments]


def has_data(spec: JobSpec) -> bool:
    """Whether anything has to be brought in or taken back for the job."""
    return bool(spec.data or spec.dataset_inputs or spec.dataset_outputs)


def stores_of(spec: JobSpec) -> list[str]:
    """The names of the datastores that a job needs; the default one has no name here."""
    names = [each.datastore for each in spec.data]
    names += [each.datastore for each in spec.dataset_outputs]
    names += [source.store for given in spec.dataset_inputs for source in given.definition.sources]
    return sorted({name for name in names if name})


def dump_spec(spec: JobSpec) -> str:
    """`spec` as JSON text."""
    return json.dumps(to_plain(spec), indent=1, sort_keys=True)


def load_spec(text: str, where: str = "the job specification") -> JobSpec:
    """The JobSpec in `text`; one clear error for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserErrorException(f"{where} is not JSON", cause=str(error)) from None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SPEC_VERSION:
        raise UserErrorException(
            f"{where} has version {version}; this Trainmaster reads up to {SPEC_VERSION}",
            hint="Install a newer Trainmaster.",
        )
    try:
        spec = from_plain(JobSpec, data, where)
    except PlainDataError as error:
        raise UserErrorException(f"{where} cannot be used", cause=str(error)) from None
    problem = _problem(spec)
    if problem:
        raise UserErrorException(f"{where} cannot be used", cause=problem)
    return spec


def _problem(spec: JobSpec) -> str:
    """What no job can be: estimators never compile to it, but a file may have been edited by hand."""
    if bool(spec.script) == bool(spec.command):
        return "it needs either a script or a command"
    if spec.script.startswith("/") or ".." in spec.script.split("/"):
        return f"its script {spec.script!r} does not lie in the source folder"
    if bool(spec.program) != (spec.entry == "program"):
        return "a program is needed for an entry of this kind, and for no other"
    counts = {
        "node_count": spec.node_count,
        "process_count_per_node": spec.distribution.process_count_per_node,
        "worker_count": spec.distribution.worker_count,
        "process_count": spec.distribution.process_count,
        "min_nodes": spec.distribution.min_nodes,
        "max_run_duration_seconds": spec.max_run_duration_seconds,
    }
    wrong = [f"{name}={value}" for name, value in counts.items() if value is not None and value < 1]
    if wrong:
        return f"{wrong[0]} must be at least 1"
    if spec.distribution.min_nodes is not None and spec.distribution.min_nodes > spec.node_count:
        return f"min_nodes={spec.distribution.min_nodes} is more than node_count={spec.node_count}"
    if spec.distribution.wait_seconds < 0:
        return f"wait_seconds={spec.distribution.wait_seconds} must not be negative"
    if abs(spec.priority) > MOST_PRIORITY:
        return f"priority={spec.priority} is not between -{MOST_PRIORITY} and {MOST_PRIORITY}"
    if spec.max_retries < 0:
        return f"max_retries={spec.max_retries} must not be negative"
    if spec.hang_seconds is not None and not 0 < spec.hang_seconds < math.inf:
        return f"hang_seconds={spec.hang_seconds} must be a positive number"
    return ""
