"""Archived runs, and views that somebody saved.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_SHOWN = "parent_id IS NULL AND archived_at IS NULL"


def upgrade() -> None:
    """Add the time of archiving, which the indexes of lists leave out, and the table of views."""
    op.add_column("runs", sa.Column("archived_at", sa.Float(53)))
    op.drop_index("ix_runs_top", "runs")
    op.drop_index("ix_runs_experiment_top", "runs")
    _create_partial_index("ix_runs_top", "runs", ["seq"], _SHOWN)
    _create_partial_index("ix_runs_experiment_top", "runs", ["experiment_seq", "seq"], _SHOWN)
    _create_partial_index("ix_runs_archived", "runs", ["seq"], "archived_at IS NOT NULL")
    op.create_table(
        "views",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("page", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("is_shared", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("modified_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_views"),
        sa.UniqueConstraint("owner", "page", "name", name="uq_views_owner_page_name"),
    )


def _create_partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
