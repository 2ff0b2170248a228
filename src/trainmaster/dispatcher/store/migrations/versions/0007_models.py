"""Models: every version of every name. A deleted one leaves its row, so that its number is never given again.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "models",
        sa.Column("seq", _KEY, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("manifest", sa.String(128), nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("file_count", sa.Integer, nullable=False),
        sa.Column("byte_count", sa.BigInteger, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.Column("framework", sa.String(255), nullable=False),
        sa.Column("framework_version", sa.String(255), nullable=False),
        sa.Column("run_id", sa.String(255), nullable=False),
        sa.Column("experiment", sa.String(255), nullable=False),
        sa.Column("lineage", sa.Text, nullable=False),
        sa.Column("datasets", sa.Text, nullable=False),
        sa.Column("sample_input", sa.String(64), nullable=False),
        sa.Column("sample_output", sa.String(64), nullable=False),
        sa.Column("resources", sa.Text, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("modified_at", sa.Float(53), nullable=False),
        sa.Column("deleted_at", sa.Float(53)),
        sa.PrimaryKeyConstraint("seq", name="pk_models"),
        sa.UniqueConstraint("name", "version", name="uq_models_name_version"),
        sa.UniqueConstraint("key", name="uq_models_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_models_run_id", "models", ["run_id"])
