"""Plain records that the store keeps and the dispatcher answers with, and the states of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

from trainmaster.shared.job_spec import DatasetDefinition


class Status(StrEnum):
    """The states of a run, by their v1 names."""

    NOT_STARTED = "NotStarted"
    PREPARING = "Preparing"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    FINALIZING = "Finalizing"
    CANCEL_REQUESTED = "CancelRequested"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED})
ACTIVE = frozenset(Status) - TERMINAL

MLFLOW_RUN = "mlflow"
"""The type of runs that MLflow's clients create. No job and no program of ours belongs to them."""

# Which state may follow which. A terminal state has no successor: that is promise 1.
SUCCESSORS: Mapping[Status, frozenset[Status]] = {
    Status.NOT_STARTED: frozenset(
        {Status.PREPARING, Status.QUEUED, Status.STARTING, Status.RUNNING, Status.CANCEL_REQUESTED}
    )
    | TERMINAL,
    Status.PREPARING: frozenset({Status.QUEUED, Status.STARTING, Status.CANCEL_REQUESTED}) | TERMINAL,
    Status.QUEUED: frozenset({Status.PREPARING, Status.STARTING, Status.CANCEL_REQUESTED}) | TERMINAL,
    Status.STARTING: frozenset({Status.RUNNING, Status.FINALIZING, Status.CANCEL_REQUESTED}) | TERMINAL,
    # Back to Starting when a failed run is retried.
    Status.RUNNING: frozenset({Status.STARTING, Status.FINALIZING, Status.CANCEL_REQUESTED}) | TERMINAL,
    Status.CANCEL_REQUESTED: frozenset({Status.FINALIZING}) | TERMINAL,
    Status.FINALIZING: TERMINAL,
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELED: frozenset(),
}


PRIORITY_PROPERTY = "trainmaster.priority"
"""The property of a run that has another priority than 0."""
LIMITS_PROPERTY = "trainmaster.limits"
"""The property of a run whose nodes have limits: which, and what enforces them."""


@dataclass(frozen=True)
class RunError:
    """Why a run failed: shown first, everywhere."""

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    """For a script: rank, node, exit_code, signal, tail (the last lines it wrote)."""


@dataclass(frozen=True)
class ExperimentRecord:
    """A named group of runs."""

    id: str
    name: str
    created_at: float
    archived_at: float | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """One run, as the store has it. Times are seconds since the epoch (UTC)."""

    id: str
    experiment: str
    """The experiment's name."""
    status: Status
    created_at: float
    seq: int = 0
    """Position in the workspace: larger is newer; given by the store."""
    number: int = 0
    """Ordinal within the experiment; given by the store."""
    type: str = "azureml.scriptrun"
    parent_id: str | None = None
    display_name: str = ""
    description: str = ""
    target: str = ""
    spec: str = ""
    """The JobSpec as JSON text; empty for interactive runs."""
    snapshot_id: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    waiting_for: str = ""
    """While it waits: a sentence that says what it waits for."""
    nodes: tuple[int, ...] = ()
    """The nodes of the target that it uses."""
    error: RunError | None = None
    warnings: tuple[str, ...] = ()
    submitted_by: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    archived_at: float | None = None
    """When it was archived. Archived runs are left out of lists."""
    params: Mapping[str, str] = field(default_factory=dict)
    """What MLflow's clients have logged as parameters. Lists of runs leave it out."""


@dataclass(frozen=True)
class RunQuery:
    """Which runs to list: newest first, `limit` at most, older than `before_seq`."""

    experiment: str | None = None
    parent_id: str | None = None
    recursive: bool = False
    """With `parent_id`: all descendants."""
    include_children: bool = False
    type: str | None = None
    statuses: tuple[str, ...] = ()
    target: str | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Tag name to value; None matches any value."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    limit: int = 100
    before_seq: int | None = None
    archived: bool = False
    """Whether archived runs are listed too. Those with a given parent always are."""


@dataclass(frozen=True)
class RunPage:
    """A page of a search."""

    rows: tuple[Mapping[str, Any], ...]
    """For each run, the columns that were asked for, by the names they were asked for; absent values are null."""
    cursor: str = ""
    """Gives the next page; empty if there is none."""
    total: int | None = None
    """All runs that match, if they were counted."""


@dataclass(frozen=True)
class RunChange:
    """A run that has changed."""

    id: str
    kinds: tuple[str, ...]
    """What has changed: created, state, metrics, labels (tags, properties, names), deleted."""
    status: str | None = None
    """The state, if it is known without a look at the run."""


@dataclass(frozen=True)
class RunChanges:
    """The changes of runs since an earlier answer."""

    version: str
    """Pass it on with the next request."""
    whole: bool
    """Whether these are all changes since then. If not, read again what you show."""
    runs: tuple[RunChange, ...] = ()


@dataclass(frozen=True)
class MetricSummary:
    """One metric of a run without its history."""

    name: str
    kind: str
    """scalar, row, image or json; system for what Trainmaster measured."""
    count: int
    last: Any = None
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class SystemSeries:
    """What a rank or a node used, measurement by measurement."""

    times: tuple[float, ...]
    """Seconds since 1970."""
    values: tuple[float, ...]

    @property
    def last(self) -> float:
        """The newest value."""
        return self.values[-1]

    @property
    def peak(self) -> float:
        """The largest value."""
        return max(self.values)

    @property
    def mean(self) -> float:
        """The average of all values."""
        return sum(self.values) / len(self.values)


@dataclass(frozen=True)
class LatestUse:
    """What a run used when it was last measured."""

    run_id: str
    at: float
    """Of the newest measurement, in seconds since 1970."""
    values: Mapping[str, Mapping[str, float]]
    """By the name of the metric, then by rank, or by node for metrics `system/node/...`."""


@dataclass(frozen=True)
class MetricSeries:
    """The values of one metric, oldest first, possibly down-sampled."""

    name: str
    kind: str
    count: int
    """The number of values in the full series."""
    values: tuple[Any, ...] = ()
    steps: tuple[int | None, ...] = ()
    times: tuple[float, ...] = ()
    index: tuple[int, ...] = ()
    """Position of each value in the full series."""
    ranks: tuple[int | None, ...] = ()
    """The rank that logged each value; None for a value from outside of the job."""


Finite = NewType("Finite", float)
"""A number that JSON has: neither NaN nor infinite."""


@dataclass(frozen=True)
class Curve:
    """The numbers of one metric of one run, for a chart, possibly down-sampled."""

    run_id: str
    name: str
    count: int
    """The number of values in the full series. Pass it as `since` to get only what is new."""
    rank: int | None
    """The rank that logged these values, if ranks were asked for."""
    values: tuple[Finite | None, ...]
    """Null for what is not a finite number."""
    steps: tuple[int | None, ...]
    """Empty if no value has a step."""
    times: tuple[Finite, ...]
    index: tuple[int, ...]
    """Position of each value in the full series."""


@dataclass(frozen=True)
class Sparkline:
    """A few numbers of one metric of one run, at about equal distances."""

    run_id: str
    name: str
    values: tuple[Finite | None, ...]


@dataclass(frozen=True)
class RunOutline:
    """A run with its metrics, without their history."""

    run: RunRecord
    metrics: tuple[MetricSummary, ...]


@dataclass(frozen=True)
class RunFields:
    """Names that runs have: for each kind, what stands after `arg.`, `metric.`, `tag.` and `property.` in a filter."""

    arguments: tuple[str, ...]
    metrics: tuple[str, ...]
    tags: tuple[str, ...]
    properties: tuple[str, ...]
    is_all: bool = True
    """Whether there are no further ones."""


@dataclass(frozen=True)
class RankMetric:
    """What one rank logged to one metric."""

    rank: int | None
    summary: MetricSummary
    series: MetricSeries
    """`index` counts in the series of all ranks."""


@dataclass(frozen=True)
class TargetRecord:
    """A compute target: nodes of one size."""

    name: str
    engine: str
    nodes: int
    cpus_per_node: int
    gpus_per_node: int
    options: Mapping[str, Any] = field(default_factory=dict)
    created_at: float = 0.0


@dataclass(frozen=True)
class BuildReport:
    """One build of an environment, with what it takes and who uses it."""

    name: str
    """`<digest>.<n>`."""
    digest: str
    current: bool
    """Whether new runs get this build; if not, a newer one replaced it."""
    python: str
    packages: tuple[str, ...]
    bytes: int
    own_bytes: int
    """The size of files not shared with uv's cache or another environment: what removing the build frees."""
    built_at: float
    last_used_at: float
    users: tuple[str, ...]
    """The runs and services that need it."""
    path: str
    """Its folder on the dispatcher's machine."""


WHOLE_WORKSPACE, EACH_USER = "", "*"
NOBODY = "/"
"""Owner of files that belong to no run. They count for the workspace; no user has this name."""
"""Owners of quotas that are not users."""


@dataclass(frozen=True)
class NodeUse:
    """Nodes that a run of a user has or had."""

    user: str
    nodes: int
    since: float
    until: float


@dataclass(frozen=True)
class Quota:
    """What the active runs of an owner may use at once, and how much disk the ended ones. None is no limit."""

    owner: str
    """A user, `EACH_USER` (each one without a quota of their own) or `WHOLE_WORKSPACE`."""
    runs: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class QuotaReport:
    """A quota, and what its owner uses now; nothing for `EACH_USER`."""

    quota: Quota
    runs: int = 0
    nodes: int = 0
    gpus: int = 0
    disk_bytes: int = 0


@dataclass(frozen=True)
class RetentionRule:
    """Which runs of an experiment are kept; the dispatcher removes the others."""

    experiment: str
    rule: str
    """For example `best 5 by accuracy highest, newest 20, tagged`."""
    set_at: float


@dataclass(frozen=True)
class SavedView:
    """What somebody wants to look at again: a page, and what it shows."""

    id: str
    owner: str
    page: str
    """The name of the page: runs, compare, ..."""
    name: str
    query: str
    """The part of the page's address after the question mark."""
    is_shared: bool = False
    """Whether everybody who may read the workspace sees it."""
    created_at: float = 0.0
    modified_at: float = 0.0


@dataclass(frozen=True)
class EnvironmentRecord:
    """One version of a registered environment."""

    name: str
    version: int
    definition: Mapping[str, Any] = field(default_factory=dict)
    """What `environments.definition_file` reads and writes."""
    digest: str = ""
    """The digest of the definition. Registering the same definition again adds no version."""
    labels: tuple[str, ...] = ()
    created_at: float = 0.0


@dataclass(frozen=True)
class DatastoreRecord:
    """A named storage: any fsspec URL."""

    name: str
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_default: bool = False
    created_at: float = 0.0


@dataclass(frozen=True)
class DatasetRecord:
    """A dataset of the workspace: a version of a registered name, or one that a run used without a name."""

    id: str
    definition: DatasetDefinition
    name: str = ""
    version: int | None = None
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    created_at: float = 0.0


@dataclass(frozen=True)
class SweepRecord:
    """The part of a sweep that other runs do not have."""

    spec: str
    """The SweepSpec as JSON text."""
    ending_status: str = ""
    """The status it will end with, once that is decided."""
    ending_reason: str = ""


@dataclass(frozen=True)
class TrialRecord:
    """The part of a trial that other runs do not have, and what its sweep needs of the run."""

    number: int
    run_id: str
    parameters: Mapping[str, Any]
    continues: str = ""
    """The run of an earlier sweep that it continues."""
    judged: int = 0
    """The last interval at which the policy judged it."""
    cut: str = ""
    """The reason of the policy, if it cut the trial."""
    status: Status = Status.NOT_STARTED
    created_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    error: str = ""
    """Why it failed."""


@dataclass(frozen=True)
class DatasetUse:
    """A dataset that a model refers to, and its purpose, such as training."""

    purpose: str
    dataset_id: str


NO_STAGE, STAGING, PRODUCTION, ARCHIVED = "None", "Staging", "Production", "Archived"
STAGES = (NO_STAGE, STAGING, PRODUCTION, ARCHIVED)
"""MLflow's stages of models."""


def find_stage(text: str) -> str | None:
    """A stage, in whatever case it is written; None for another text.

    >>> find_stage("production"), find_stage("Live")
    ('Production', None)
    """
    return next((stage for stage in STAGES if stage.lower() == text.lower()), None)


@dataclass(frozen=True)
class ModelRecord:
    """One version of a registered model."""

    name: str
    key: str
    """Identifies the registration. Repeating it returns the same model."""
    manifest: str
    """The digest of the list of its files."""
    entry: str
    """The name of the file or folder that was registered."""
    version: int = 0
    """Given by the store."""
    file_count: int = 0
    byte_count: int = 0
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    framework: str = ""
    framework_version: str = ""
    run_id: str = ""
    """The run whose files it is made of."""
    experiment: str = ""
    lineage: Mapping[str, Any] = field(default_factory=dict)
    """The snapshot, environment and data of the run."""
    datasets: tuple[DatasetUse, ...] = ()
    sample_input: str = ""
    """The id of a dataset, as in `sample_output`."""
    sample_output: str = ""
    resources: Mapping[str, Any] = field(default_factory=dict)
    """The resources that a service needs for it: cpu, memory_in_gb, gpu."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Properties that programs determined, such as its inputs and outputs: any JSON by a name."""
    created_by: str = ""
    created_at: float = 0.0
    modified_at: float = 0.0
    stage: str = NO_STAGE
    """MLflow's stage: None, Staging, Production or Archived."""
    aliases: tuple[str, ...] = ()
    """MLflow's aliases of this version. Each belongs to one version of the name."""
    source: str = ""
    """Where a client of MLflow said that its files are; empty for one that was registered otherwise."""
    run_link: str = ""
    """The address of a run that a client of MLflow gave."""
    logged_model_id: str = ""
    """The logged model of MLflow that it was registered from."""


NO_MANIFEST = ""
"""The manifest of a model whose files have not been found yet: they are read from its source when it is first used."""


@dataclass(frozen=True)
class RegisteredModelRecord:
    """The name of a model in MLflow's registry. It may have no versions."""

    name: str
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    created_at: float = 0.0
    modified_at: float = 0.0
    """When it, or the stage or number of its versions, last changed."""


@dataclass(frozen=True)
class ModelQuery:
    """Which models to list, newest first. All conditions must hold."""

    name: str | None = None
    version: int | None = None
    run_id: str | None = None
    framework: str | None = None
    dataset_id: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """Name to value; None matches any value."""
    properties: Mapping[str, str | None] = field(default_factory=dict)
    latest: bool = False
    """Only the newest match of each name."""


@dataclass(frozen=True)
class TargetCheck:
    """One thing that was tried on a target, and what came of it."""

    name: str
    is_ok: bool
    message: str
    needed_by: str = "runs"
    """What needs it: "runs", or "services" for what only services on the target need."""


@dataclass(frozen=True)
class SshHostReport:
    """The properties that a host reports."""

    host: str
    name: str
    """Its own host name."""
    address: str
    python: str
    version: str
    cpus: int
    gpus: int
    memory_gb: float
    free_gb: float
