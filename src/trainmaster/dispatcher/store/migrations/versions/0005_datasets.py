"""Datasets: every version of a registered name, and those that runs used without a name.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("version", sa.Integer),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("name", "version", name="uq_datasets_name_version"),
    )
