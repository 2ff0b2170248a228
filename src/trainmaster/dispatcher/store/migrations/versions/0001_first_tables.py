"""The first tables.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    _make_runs()
    _make_details()
    _make_metrics()
    _make_places()
    _guard_terminal_states(op.get_context().dialect.name)


def _guard_terminal_states(dialect: str) -> None:
    # Promise 1 in the database itself: whatever program writes here, a run that has ended stays as it ended.
    if dialect == "sqlite":
        op.execute("""
            CREATE TRIGGER runs_stay_ended BEFORE UPDATE OF status ON runs
            WHEN OLD.status IN ('Canceled', 'Completed', 'Failed') AND NEW.status IS NOT OLD.status
            BEGIN SELECT RAISE(ABORT, 'a terminal state never changes'); END
        """)
        return
    op.execute("""
        CREATE FUNCTION runs_stay_ended() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'a terminal state never changes'; END $$
    """)
    op.execute("""
        CREATE TRIGGER runs_stay_ended BEFORE UPDATE OF status ON runs FOR EACH ROW
        WHEN (OLD.status IN ('Canceled', 'Completed', 'Failed') AND NEW.status <> OLD.status)
        EXECUTE FUNCTION runs_stay_ended()
    """)


def _make_runs() -> None:
    op.create_table(
        "experiments",
        sa.Column("seq", _KEY, nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("archived_at", sa.Float(53)),
        sa.Column("run_count", sa.Integer, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_experiments"),
        sa.UniqueConstraint("id", name="uq_experiments_id"),
        sa.UniqueConstraint("name", name="uq_experiments_name"),
    )
    op.create_table(
        "runs",
        sa.Column("seq", _KEY, nullable=False),
        sa.Column("id", sa.String(255), nullable=False),
        sa.Column("experiment_seq", _KEY, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("parent_id", sa.String(255)),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("started_at", sa.Float(53)),
        sa.Column("ended_at", sa.Float(53)),
        sa.Column("display_name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("target", sa.String(255), nullable=False),
        sa.Column("snapshot_id", sa.String(128), nullable=False),
        sa.Column("waiting_for", sa.Text, nullable=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("warnings", sa.Text, nullable=False),
        sa.Column("submitted_by", sa.String(255), nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.CheckConstraint(
            "(ended_at IS NOT NULL) = (status IN ('Canceled', 'Completed', 'Failed'))",
            name=op.f("ck_runs_ended_is_terminal"),
        ),
        sa.ForeignKeyConstraint(["experiment_seq"], ["experiments.seq"], name="fk_runs_experiment_seq"),
        sa.ForeignKeyConstraint(["parent_id"], ["runs.id"], name="fk_runs_parent_id"),
        sa.PrimaryKeyConstraint("seq", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_runs_active",
        "runs",
        ["seq"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index("ix_runs_experiment", "runs", ["experiment_seq", "seq"])
    op.create_index(
        "ix_runs_experiment_top",
        "runs",
        ["experiment_seq", "seq"],
        sqlite_where=sa.text("parent_id IS NULL"),
        postgresql_where=sa.text("parent_id IS NULL"),
    )
    op.create_index(
        "ix_runs_parent",
        "runs",
        ["parent_id", "seq"],
        sqlite_where=sa.text("parent_id IS NOT NULL"),
        postgresql_where=sa.text("parent_id IS NOT NULL"),
    )
    op.create_index("ix_runs_target", "runs", ["target", "seq"])
    op.create_index(
        "ix_runs_top",
        "runs",
        ["seq"],
        sqlite_where=sa.text("parent_id IS NULL"),
        postgresql_where=sa.text("parent_id IS NULL"),
    )


def _make_details() -> None:
    op.create_table(
        "run_specs",
        sa.Column("run_seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_run_specs_run_seq"),
        sa.PrimaryKeyConstraint("run_seq", name="pk_run_specs"),
    )
    op.create_table(
        "run_labels",
        sa.Column("run_seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.SmallInteger, autoincrement=False, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_run_labels_run_seq"),
        sa.PrimaryKeyConstraint("run_seq", "kind", "name", name="pk_run_labels"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_run_labels_value", "run_labels", ["kind", "name", "value", "run_seq"])
    op.create_table(
        "journals",
        sa.Column("run_seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("journal", sa.String(255), nullable=False),
        sa.Column("offset", sa.BigInteger, nullable=False),
        sa.Column("ignored", sa.Integer, nullable=False),
        sa.Column("ignored_because", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_journals_run_seq"),
        sa.PrimaryKeyConstraint("run_seq", "journal", name="pk_journals"),
    )


def _make_metrics() -> None:
    op.create_table(
        "metrics",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("run_seq", _KEY, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("minimum", sa.Float(53)),
        sa.Column("maximum", sa.Float(53)),
        sa.Column("last_number", sa.Float(53)),
        sa.Column("last_form", sa.SmallInteger, nullable=False),
        sa.Column("last_text", sa.Text),
        sa.Column("open_low", sa.Float(53)),
        sa.Column("open_low_idx", sa.BigInteger),
        sa.Column("open_high", sa.Float(53)),
        sa.Column("open_high_idx", sa.BigInteger),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_metrics_run_seq"),
        sa.PrimaryKeyConstraint("id", name="pk_metrics"),
        sa.UniqueConstraint("run_seq", "name", name="uq_metrics_run_seq_name"),
    )
    op.create_table(
        "metric_points",
        sa.Column("metric_id", _KEY, autoincrement=False, nullable=False),
        sa.Column("idx", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("number", sa.Float(53)),
        sa.Column("form", sa.SmallInteger, nullable=False),
        sa.Column("text", sa.Text),
        sa.Column("step", sa.BigInteger),
        sa.Column("time", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["metric_id"], ["metrics.id"], name="fk_metric_points_metric_id"),
        sa.PrimaryKeyConstraint("metric_id", "idx", name="pk_metric_points"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "metric_blocks",
        sa.Column("metric_id", _KEY, autoincrement=False, nullable=False),
        sa.Column("block", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("low", sa.Float(53)),
        sa.Column("low_idx", sa.BigInteger),
        sa.Column("high", sa.Float(53)),
        sa.Column("high_idx", sa.BigInteger),
        sa.ForeignKeyConstraint(["metric_id"], ["metrics.id"], name="fk_metric_blocks_metric_id"),
        sa.PrimaryKeyConstraint("metric_id", "block", name="pk_metric_blocks"),
        sqlite_with_rowid=False,
    )


def _make_places() -> None:
    op.create_table(
        "targets",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("engine", sa.String(64), nullable=False),
        sa.Column("nodes", sa.Integer, nullable=False),
        sa.Column("cpus_per_node", sa.Integer, nullable=False),
        sa.Column("gpus_per_node", sa.Integer, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_targets"),
    )
    op.create_table(
        "datastores",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("is_default", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_datastores"),
    )
    op.create_table(
        "facts",
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_facts"),
    )
