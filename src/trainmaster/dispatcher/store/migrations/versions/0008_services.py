"""Scoring services, and the images of v1's older way to deploy.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "services",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("compute_type", sa.String(16), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("serving", sa.Integer, nullable=False),
        sa.Column("port", sa.Integer, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("served", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("image_id", sa.String(300), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("warnings", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_services"),
    )
    op.create_table(
        "images",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", "version", name="pk_images"),
        sa.UniqueConstraint("token", name="uq_images_token"),
    )
