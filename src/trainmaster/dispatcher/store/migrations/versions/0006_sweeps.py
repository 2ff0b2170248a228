"""Sweeps, and their trials: what was sampled, what the policy said, how the sweep ends.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sweeps",
        sa.Column("run_seq", _KEY, nullable=False, autoincrement=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("ending_status", sa.String(32), nullable=False),
        sa.Column("ending_reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_seq", name="pk_sweeps"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_sweeps_run_seq"),
    )
    op.create_table(
        "trials",
        sa.Column("sweep_seq", _KEY, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("run_seq", _KEY, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("continues", sa.String(255), nullable=False),
        sa.Column("judged", sa.Integer, nullable=False),
        sa.Column("cut", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("sweep_seq", "number", name="pk_trials"),
        sa.UniqueConstraint("run_seq", name="uq_trials_run_seq"),
        sa.ForeignKeyConstraint(["sweep_seq"], ["sweeps.run_seq"], name="fk_trials_sweep_seq"),
        sa.ForeignKeyConstraint(["run_seq"], ["runs.seq"], name="fk_trials_run_seq"),
    )
