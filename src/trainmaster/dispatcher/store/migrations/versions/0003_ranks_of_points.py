"""Every metric point knows the rank that logged it; of older points, and of what no rank logged, it is not known.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column: no row is touched, however many there are."""
    op.add_column("metric_points", sa.Column("rank", sa.Integer))
