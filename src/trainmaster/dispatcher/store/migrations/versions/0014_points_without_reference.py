"""No foreign key on the points of metrics in PostgreSQL: checking it took more time than the rest of an insert.

SQLite keeps its own, which costs little there and could only be removed by writing the table anew.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Drop the foreign key in PostgreSQL."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("fk_metric_points_metric_id", "metric_points", type_="foreignkey")
