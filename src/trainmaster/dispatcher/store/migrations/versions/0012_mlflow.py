"""What MLflow's clients write: parameters of runs, locations of experiments; runs without a job may be opened again.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the columns, the indexes, and the exception to the rule that a terminal state never changes."""
    op.add_column("experiments", sa.Column("artifact_location", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("experiments", sa.Column("modified_at", sa.Float(53)))
    op.add_column("runs", sa.Column("params", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("runs", sa.Column("end_ms", sa.BigInteger))
    op.add_column("metrics", sa.Column("last_idx", sa.BigInteger))
    op.create_index("ix_runs_experiment_created", "runs", ["experiment_seq", "created_at", "id"])
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("experiments", "name", type_=sa.String(500))
    _index_nans()
    _allow_reopening()
    _create_inputs()
    _create_logged_models()
    _register_names()


def _index_nans() -> None:
    """For sorting by a metric: the runs whose last value is not a number."""
    where = sa.text("last_number IS NULL")
    op.create_index("ix_metrics_no_number", "metrics", ["name", "run_seq"], sqlite_where=where, postgresql_where=where)


def _allow_reopening() -> None:
    """A run of MLflow has no job: its client says when it goes on."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER runs_stay_ended")
        op.execute("""
            CREATE TRIGGER runs_stay_ended BEFORE UPDATE OF status ON runs
            WHEN OLD.status IN ('Canceled', 'Completed', 'Failed') AND NEW.status IS NOT OLD.status
                AND OLD.type <> 'mlflow'
            BEGIN SELECT RAISE(ABORT, 'a terminal state never changes'); END
        """)
        return
    op.execute("DROP TRIGGER runs_stay_ended ON runs")
    op.execute("""
        CREATE TRIGGER runs_stay_ended BEFORE UPDATE OF status ON runs FOR EACH ROW
        WHEN (OLD.status IN ('Canceled', 'Completed', 'Failed') AND NEW.status <> OLD.status
            AND OLD.type <> 'mlflow')
        EXECUTE FUNCTION runs_stay_ended()
    """)


_Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ExactText = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _create_inputs() -> None:
    """The datasets that runs have read."""
    op.create_table(
        "input_datasets",
        sa.Column("seq", _Key, nullable=False),
        sa.Column("experiment_seq", _Key, nullable=False),
        sa.Column("name", _ExactText, nullable=False),
        sa.Column("digest", _ExactText, nullable=False),
        sa.Column("source_type", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("schema", sa.Text),
        sa.Column("profile", sa.Text),
        sa.PrimaryKeyConstraint("seq", name="pk_input_datasets"),
        sa.ForeignKeyConstraint(["experiment_seq"], ["experiments.seq"], name="fk_input_datasets_experiment_seq"),
        sa.UniqueConstraint("experiment_seq", "name", "digest", name="uq_input_datasets_experiment_seq_name_digest"),
    )
    op.create_index("ix_input_datasets_name", "input_datasets", ["name", "digest"])
    op.create_index("ix_input_datasets_digest", "input_datasets", ["digest"])
    op.create_table(
        "run_inputs",
        sa.Column("run_seq", _Key, nullable=False),
        sa.Column("dataset_seq", _Key, nullable=False),
        sa.Column("context", _ExactText),
        sa.Column("tags", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_seq", "dataset_seq", name="pk_run_inputs"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_run_inputs_run_seq"),
        sa.ForeignKeyConstraint(["dataset_seq"], ["input_datasets.seq"], name="fk_run_inputs_dataset_seq"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_run_inputs_dataset", "run_inputs", ["dataset_seq", "run_seq"])
    op.create_index("ix_run_inputs_context", "run_inputs", ["context", "run_seq"])


def _create_logged_models() -> None:
    """Models that need not be registered, what was logged of them, and the runs that read or made them."""
    op.create_table(
        "logged_models",
        sa.Column("seq", _Key, nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("experiment_seq", _Key, nullable=False),
        sa.Column("name", _ExactText, nullable=False),
        sa.Column("type", _ExactText),
        sa.Column("source_run_id", _ExactText),
        sa.Column("status", sa.SmallInteger, nullable=False),
        sa.Column("status_message", _ExactText),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("modified_ms", sa.BigInteger, nullable=False),
        sa.Column("deleted_at", sa.Float(53)),
        sa.PrimaryKeyConstraint("seq", name="pk_logged_models"),
        sa.UniqueConstraint("id", name="uq_logged_models_id"),
        sa.ForeignKeyConstraint(["experiment_seq"], ["experiments.seq"], name="fk_logged_models_experiment_seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_logged_models_experiment", "logged_models", ["experiment_seq", "created_ms", "id"])
    op.create_index("ix_logged_models_source", "logged_models", ["source_run_id"])
    op.create_table(
        "logged_model_labels",
        sa.Column("model_seq", _Key, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("name", _ExactText, nullable=False),
        sa.Column("value", _ExactText, nullable=False),
        sa.PrimaryKeyConstraint("model_seq", "kind", "name", name="pk_logged_model_labels"),
        sa.ForeignKeyConstraint(["model_seq"], ["logged_models.seq"], name="fk_logged_model_labels_model_seq"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "logged_model_metrics",
        sa.Column("seq", _Key, nullable=False),
        sa.Column("model_seq", _Key, nullable=False),
        sa.Column("name", _ExactText, nullable=False),
        sa.Column("time_ms", sa.BigInteger, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("run_seq", _Key, nullable=False),
        sa.Column("value", sa.Float(53)),
        sa.Column("dataset_name", _ExactText),
        sa.Column("dataset_digest", _ExactText),
        sa.PrimaryKeyConstraint("seq", name="pk_logged_model_metrics"),
        sa.UniqueConstraint("model_seq", "name", "time_ms", "step", "run_seq", name="uq_logged_model_metrics"),
        sa.ForeignKeyConstraint(["model_seq"], ["logged_models.seq"], name="fk_logged_model_metrics_model_seq"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_logged_model_metrics_run_seq"),
    )
    op.create_index("ix_logged_model_metrics_run", "logged_model_metrics", ["run_seq"])
    op.create_table(
        "run_models",
        sa.Column("run_seq", _Key, nullable=False),
        sa.Column("direction", sa.SmallInteger, nullable=False),
        sa.Column("model_id", _ExactText, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("run_seq", "direction", "model_id", name="pk_run_models"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_run_models_run_seq"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_run_models_model", "run_models", ["model_id", "direction"])


def _register_names() -> None:
    """The names of models get rows; aliases and stages, which jobs kept as tags of versions, get columns."""
    exact = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    names = op.create_table(
        "registered_models",
        sa.Column("name", exact, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("modified_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_registered_models"),
    )
    op.add_column("models", sa.Column("stage", sa.String(20), nullable=False, server_default=sa.text("'None'")))
    op.add_column("models", sa.Column("aliases", sa.Text, nullable=False, server_default=sa.text("'[]'")))
    op.add_column("models", sa.Column("source", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("models", sa.Column("run_link", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("models", sa.Column("logged_model_id", sa.String(64), nullable=False, server_default=sa.text("''")))
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.alter_column("models", "name", type_=sa.String(256))
    rows = connection.execute(
        sa.text("SELECT name, MIN(created_at), MAX(modified_at) FROM models WHERE deleted_at IS NULL GROUP BY name")
    ).all()
    if rows:
        keys = ("name", "created_at", "modified_at")
        common = {"description": "", "tags": "{}"}
        connection.execute(names.insert(), [{**dict(zip(keys, row, strict=True)), **common} for row in rows])
    _move_tags(connection)


def _move_tags(connection: sa.Connection) -> None:
    stage_tag, alias_tag = "mlflow.stage", "mlflow.alias."
    stages = ("None", "Staging", "Production", "Archived")
    change = sa.text("UPDATE models SET tags = :tags, stage = :stage, aliases = :aliases WHERE seq = :seq")
    for seq, text in connection.execute(
        sa.text("SELECT seq, tags FROM models WHERE deleted_at IS NULL AND tags LIKE '%mlflow.%'")
    ).all():
        tags = json.loads(text)
        stage = next((each for each in stages if each.lower() == str(tags.get(stage_tag, "")).lower()), "None")
        aliases = sorted(key[len(alias_tag) :] for key in tags if key.startswith(alias_tag))
        kept = {key: value for key, value in tags.items() if key != stage_tag and not key.startswith(alias_tag)}
        values = {"seq": seq, "tags": json.dumps(kept), "stage": stage, "aliases": json.dumps(aliases)}
        connection.execute(change, values)
