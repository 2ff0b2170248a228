"""The tables, for SQLite and PostgreSQL. A change here needs a new file in `migrations/versions`."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.records import TERMINAL

REVISION = "0014"
"""The newest migration. Revisions are numbers, so that they can be compared."""

NEVER_MIGRATED = "0000"

VERSION_TABLE = "alembic_version"


def is_older(revision: str, shown: str) -> bool:
    """Whether a database of this revision has to be migrated; an error if a newer Trainmaster made it."""
    if revision == REVISION:
        return False
    if not (revision.isdecimal() and int(revision) < int(REVISION)):
        raise WorkspaceException(
            f"{shown} was made by a newer Trainmaster",
            cause=f"Its revision is {revision}; this Trainmaster knows up to {REVISION}.",
            hint="Upgrade with `pip install --upgrade trainmaster`.",
        )
    return True


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column that is exactly INTEGER.
_Key = BigInteger().with_variant(Integer, "sqlite")

# Compared byte by byte, as SQLite does; in PostgreSQL the database may have been created with another order.
_ExactText = Text().with_variant(Text(collation="C"), "postgresql")

_TERMINAL_LIST = ", ".join(f"'{status}'" for status in sorted(TERMINAL))


_SHOWN = "parent_id IS NULL AND archived_at IS NULL"


def _partial_index(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


experiments = Table(
    "experiments",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("id", String(64), nullable=False, unique=True),
    # SQLite knows no lengths, and cannot change a column.
    Column("name", String(500).with_variant(String(255), "sqlite"), nullable=False, unique=True),
    Column("created_at", Float(53), nullable=False),
    Column("archived_at", Float(53)),
    Column("run_count", Integer, nullable=False),
    Column("tags", Text, nullable=False),
    # Where MLflow's clients keep files of runs; empty for the workspace itself. Never opened by us.
    Column("artifact_location", Text, nullable=False, server_default=text("''")),
    Column("modified_at", Float(53)),
)

# Tags and properties lie in the run's row as JSON, so that a page of runs is one query; run_labels is their
# index. An empty collection is the empty text: most rows have none, and reading it costs nothing.
runs = Table(
    "runs",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("id", String(255), nullable=False, unique=True),
    Column("experiment_seq", _Key, ForeignKey("experiments.seq"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("parent_id", String(255), ForeignKey("runs.id")),
    Column("type", String(64), nullable=False),
    Column("status", String(32), nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("started_at", Float(53)),
    Column("ended_at", Float(53)),
    Column("display_name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("target", String(255), nullable=False),
    Column("snapshot_id", String(128), nullable=False),
    Column("waiting_for", Text, nullable=False),
    Column("nodes", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("submitted_by", String(255), nullable=False),
    Column("tags", Text, nullable=False),
    Column("properties", Text, nullable=False),
    # Archived runs are left out of lists.
    Column("archived_at", Float(53)),
    # MLflow's parameters, written once. The table `arguments` is their index.
    Column("params", Text, nullable=False, server_default=text("''")),
    # MLflow's end_time in milliseconds where it is not ended_at (mlflow_runs.find_end_ms).
    Column("end_ms", BigInteger),
    # What has ended is terminal and what is terminal has ended: the index of active runs rests on it.
    CheckConstraint(f"(ended_at IS NOT NULL) = (status IN ({_TERMINAL_LIST}))", name="ended_is_terminal"),
    # Lists show runs without their children first of all. Partial indexes, because SQLite takes "parent_id IS
    # NULL" for a poor reason to choose an index that has parent_id in it.
    _partial_index("ix_runs_top", "seq", where=_SHOWN),
    _partial_index("ix_runs_experiment_top", "experiment_seq", "seq", where=_SHOWN),
    _partial_index("ix_runs_archived", "seq", where="archived_at IS NOT NULL"),
    _partial_index("ix_runs_parent", "parent_id", "seq", where="parent_id IS NOT NULL"),
    _partial_index("ix_runs_active", "seq", where="ended_at IS NULL"),
    Index("ix_runs_experiment", "experiment_seq", "seq"),
    Index("ix_runs_experiment_created", "experiment_seq", "created_at", "id"),
    Index("ix_runs_target", "target", "seq"),
    Index("ix_runs_created", "created_at", "seq"),
    Index("ix_runs_user", "submitted_by", "seq"),
    # Of runs that have ended: the state of an active run changes several times.
    _partial_index("ix_runs_ended", "status", "seq", where="ended_at IS NOT NULL"),
    sqlite_autoincrement=True,
)

# Apart from the runs, so that listing runs does not read past their specifications.
run_specs = Table(
    "run_specs",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("spec", Text, nullable=False),
)

run_labels = Table(
    "run_labels",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("kind", SmallInteger, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Index("ix_run_labels_value", "kind", "name", "value", "run_seq"),
    sqlite_with_rowid=False,
)

# The arguments of the script by name, for searching. `text` is shortened to what an index takes.
arguments = Table(
    "arguments",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("name", _ExactText, primary_key=True),
    Column("text", _ExactText, nullable=False),
    Column("number", Float(53)),
    Index("ix_arguments_text", "name", "text", "run_seq"),
    _partial_index("ix_arguments_number", "name", "number", "run_seq", where="number IS NOT NULL"),
    sqlite_with_rowid=False,
)

metrics = Table(
    "metrics",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("run_seq", _Key, ForeignKey("runs.seq"), nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("minimum", Float(53)),
    Column("maximum", Float(53)),
    Column("last_number", Float(53)),
    Column("last_form", SmallInteger, nullable=False),
    Column("last_text", Text),
    # The block of metric_blocks that is not full yet: kept here, blocks are only ever inserted.
    Column("open_low", Float(53)),
    Column("open_low_idx", BigInteger),
    Column("open_high", Float(53)),
    Column("open_high_idx", BigInteger),
    # Set if `name`, which is in indexes, had to be shortened (values.name_index).
    Column("long_name", Text),
    # The point that is the last one by step and time, if it is not the one that was added last.
    Column("last_idx", BigInteger),
    UniqueConstraint("run_seq", "name"),
    _partial_index("ix_metrics_last", "name", "last_number", "run_seq", where="last_number IS NOT NULL"),
    # What is not a number comes after the numbers when runs are sorted by it.
    _partial_index("ix_metrics_no_number", "name", "run_seq", where="last_number IS NULL"),
    _partial_index("ix_metrics_minimum", "name", "minimum", "run_seq", where="minimum IS NOT NULL"),
    _partial_index("ix_metrics_maximum", "name", "maximum", "run_seq", where="maximum IS NOT NULL"),
)

metric_points = Table(
    "metric_points",
    metadata,
    Column("metric_id", _Key, primary_key=True, autoincrement=False),
    Column("idx", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Float(53)),
    Column("form", SmallInteger, nullable=False),
    Column("text", Text),
    Column("step", BigInteger),
    Column("time", Float(53), nullable=False),
    # Of the process that logged it; none for what a program outside of the job logged.
    Column("rank", Integer),
    # PostgreSQL takes longer to check it than to insert a point (`python -m benchmarks.mlflow`).
    ForeignKeyConstraint(["metric_id"], ["metrics.id"]).ddl_if(dialect="sqlite"),
    sqlite_with_rowid=False,
)

# For every 64 points of a metric (points.BLOCK): their smallest and largest, and where those are. A chart of
# a long series reads these instead of the points.
metric_blocks = Table(
    "metric_blocks",
    metadata,
    Column("metric_id", _Key, ForeignKey("metrics.id"), primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("low", Float(53)),
    Column("low_idx", BigInteger),
    Column("high", Float(53)),
    Column("high_idx", BigInteger),
    sqlite_with_rowid=False,
)

journals = Table(
    "journals",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("journal", String(255), primary_key=True),
    Column("offset", BigInteger, nullable=False),
    Column("ignored", Integer, nullable=False),
    Column("ignored_because", Text, nullable=False),
)

targets = Table(
    "targets",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("engine", String(64), nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("cpus_per_node", Integer, nullable=False),
    Column("gpus_per_node", Integer, nullable=False),
    Column("options", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
)

datastores = Table(
    "datastores",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("url", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("is_default", Boolean, nullable=False),
    Column("created_at", Float(53), nullable=False),
)

environments = Table(
    "environments",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("definition", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("labels", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", String(64), primary_key=True),
    # None for one that a run used without registering it.
    Column("name", String(255)),
    Column("version", Integer),
    Column("definition", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
    UniqueConstraint("name", "version", name="uq_datasets_name_version"),
)

# A sweep is a run; this is what it has besides. An ending is kept before trials are cancelled for it.
sweeps = Table(
    "sweeps",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("spec", Text, nullable=False),
    Column("ending_status", String(32), nullable=False),
    Column("ending_reason", Text, nullable=False),
)

# A trial is a run too. `cut` is what the policy said when it cut it, at the interval `judged`.
trials = Table(
    "trials",
    metadata,
    Column("sweep_seq", _Key, ForeignKey("sweeps.run_seq"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run_seq", _Key, ForeignKey("runs.seq"), nullable=False, unique=True),
    Column("parameters", Text, nullable=False),
    Column("continues", String(255), nullable=False),
    Column("judged", Integer, nullable=False),
    Column("cut", Text, nullable=False),
)

models = Table(
    "models",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("name", String(256).with_variant(String(255), "sqlite"), nullable=False),
    Column("version", Integer, nullable=False),
    # Identifies the registration, so that a repeated request does not register twice.
    Column("key", String(64), nullable=False, unique=True),
    Column("manifest", String(128), nullable=False),
    Column("entry", Text, nullable=False),
    Column("file_count", Integer, nullable=False),
    Column("byte_count", BigInteger, nullable=False),
    Column("description", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("framework", String(255), nullable=False),
    Column("framework_version", String(255), nullable=False),
    Column("run_id", String(255), nullable=False),
    Column("experiment", String(255), nullable=False),
    Column("lineage", Text, nullable=False),
    Column("datasets", Text, nullable=False),
    Column("sample_input", String(64), nullable=False),
    Column("sample_output", String(64), nullable=False),
    Column("resources", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("modified_at", Float(53), nullable=False),
    # A deleted model stays as a row: its number is never given again.
    Column("deleted_at", Float(53)),
    # What MLflow's clients say about a version.
    Column("stage", String(20), nullable=False, server_default=text("'None'")),
    Column("aliases", Text, nullable=False, server_default=text("'[]'")),
    Column("source", Text, nullable=False, server_default=text("''")),
    Column("run_link", Text, nullable=False, server_default=text("''")),
    Column("logged_model_id", String(64), nullable=False, server_default=text("''")),
    UniqueConstraint("name", "version"),
    Index("ix_models_run_id", "run_id"),
    sqlite_autoincrement=True,
)

# The names of models, which MLflow's clients describe and tag. Every name that has a version has a row.
registered_models = Table(
    "registered_models",
    metadata,
    Column("name", _ExactText, primary_key=True),
    Column("description", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("modified_at", Float(53), nullable=False),
)

services = Table(
    "services",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("compute_type", String(16), nullable=False),
    Column("state", String(32), nullable=False),
    Column("token", String(64), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("serving", Integer, nullable=False),
    Column("port", Integer, nullable=False),
    Column("host", String(255), nullable=False),
    Column("spec", Text, nullable=False),
    Column("served", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("image_id", String(300), nullable=False),
    Column("error", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("updated_at", Float(53), nullable=False),
)

images = Table(
    "images",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("token", String(64), nullable=False, unique=True),
    Column("state", String(32), nullable=False),
    Column("spec", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
)

# What a user, or the whole workspace, may use at once; NULL is no limit.
quotas = Table(
    "quotas",
    metadata,
    # The user's name; empty for the workspace, and * for each user without a quota of their own.
    Column("owner", String(255), primary_key=True),
    Column("runs", Integer),
    Column("nodes", Integer),
    Column("gpus", Integer),
    Column("disk_bytes", BigInteger),
)

# How much disk the files of an ended run take. Measured only while there is a quota for it.
run_sizes = Table(
    "run_sizes",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("disk_bytes", BigInteger, nullable=False),
)

# The sums of run_sizes by user.
disk_use = Table(
    "disk_use",
    metadata,
    Column("owner", String(255), primary_key=True),
    Column("disk_bytes", BigInteger, nullable=False),
)

# What somebody wants to look at again: a page of the studio, and the part of its address after the question mark.
views = Table(
    "views",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner", String(255), nullable=False),
    Column("page", String(64), nullable=False),
    Column("name", String(255), nullable=False),
    Column("query", Text, nullable=False),
    Column("is_shared", Boolean, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("modified_at", Float(53), nullable=False),
    UniqueConstraint("owner", "page", "name", name="uq_views_owner_page_name"),
)

# Data that MLflow's clients say a run has read. Known by name and digest within an experiment.
input_datasets = Table(
    "input_datasets",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("experiment_seq", _Key, ForeignKey("experiments.seq"), nullable=False),
    Column("name", _ExactText, nullable=False),
    Column("digest", _ExactText, nullable=False),
    Column("source_type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("schema", Text),
    Column("profile", Text),
    UniqueConstraint("experiment_seq", "name", "digest"),
    Index("ix_input_datasets_name", "name", "digest"),
    Index("ix_input_datasets_digest", "digest"),
)

# `tags` is JSON; `context` is the tag mlflow.data.context, for searching.
run_inputs = Table(
    "run_inputs",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("dataset_seq", _Key, ForeignKey("input_datasets.seq"), primary_key=True, autoincrement=False),
    Column("context", _ExactText),
    Column("tags", Text, nullable=False),
    Index("ix_run_inputs_dataset", "dataset_seq", "run_seq"),
    Index("ix_run_inputs_context", "context", "run_seq"),
    sqlite_with_rowid=False,
)

# Models that MLflow's clients log, which need not be registered. Their files are in a folder of the workspace.
logged_models = Table(
    "logged_models",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("experiment_seq", _Key, ForeignKey("experiments.seq"), nullable=False),
    Column("name", _ExactText, nullable=False),
    Column("type", _ExactText),
    # Not checked by MLflow: it may be empty, or no run of ours.
    Column("source_run_id", _ExactText),
    # The number of MLflow's state.
    Column("status", SmallInteger, nullable=False),
    Column("status_message", _ExactText),
    # In milliseconds, as MLflow's clients compare them.
    Column("created_ms", BigInteger, nullable=False),
    Column("modified_ms", BigInteger, nullable=False),
    Column("deleted_at", Float(53)),
    Index("ix_logged_models_experiment", "experiment_seq", "created_ms", "id"),
    Index("ix_logged_models_source", "source_run_id"),
    sqlite_autoincrement=True,
)

# Parameters and tags of logged models, by kind.
logged_model_labels = Table(
    "logged_model_labels",
    metadata,
    Column("model_seq", _Key, ForeignKey("logged_models.seq"), primary_key=True, autoincrement=False),
    Column("kind", SmallInteger, primary_key=True, autoincrement=False),
    Column("name", _ExactText, primary_key=True),
    Column("value", _ExactText, nullable=False),
    sqlite_with_rowid=False,
)

# In the order in which they were logged.
logged_model_metrics = Table(
    "logged_model_metrics",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("model_seq", _Key, ForeignKey("logged_models.seq"), nullable=False),
    Column("name", _ExactText, nullable=False),
    Column("time_ms", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("run_seq", _Key, ForeignKey("runs.seq"), nullable=False),
    # None is not a number.
    Column("value", Float(53)),
    Column("dataset_name", _ExactText),
    Column("dataset_digest", _ExactText),
    UniqueConstraint("model_seq", "name", "time_ms", "step", "run_seq", name="uq_logged_model_metrics"),
    Index("ix_logged_model_metrics_run", "run_seq"),
)

# The logged models that a run has read (direction 0) and made (1). MLflow does not check that there is one.
run_models = Table(
    "run_models",
    metadata,
    Column("run_seq", _Key, ForeignKey("runs.seq"), primary_key=True, autoincrement=False),
    Column("direction", SmallInteger, primary_key=True, autoincrement=False),
    Column("model_id", _ExactText, primary_key=True),
    Column("step", BigInteger, nullable=False),
    Index("ix_run_models_model", "model_id", "direction"),
    sqlite_with_rowid=False,
)

# How people hear of runs. `sealed` is the encrypted key that signs notifications.
channels = Table(
    "channels",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("address", Text, nullable=False),
    Column("owner", String(255), nullable=False),
    Column("events", Text, nullable=False),
    Column("experiment", Text, nullable=False),
    Column("only_chosen", Boolean, nullable=False),
    Column("is_signed", Boolean, nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("last_sent_at", Float(53)),
    Column("last_error", Text, nullable=False),
    Column("sealed", Text, nullable=False),
)

# The runs that have ended while there were channels. A trigger writes them in the transaction that ends the run, so
# that no dispatcher can die in between. They become rows of `deliveries`.
run_ends = Table(
    "run_ends",
    metadata,
    Column("seq", _Key, primary_key=True),
    Column("run_id", String(255), nullable=False),
)

# Notifications that were not delivered yet.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("channel", String(64), nullable=False),
    Column("message", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("failures", Integer, nullable=False),
    Column("next_at", Float(53), nullable=False),
    Column("error", Text, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("value", Text, nullable=False),
)
