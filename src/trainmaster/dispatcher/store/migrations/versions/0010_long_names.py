"""Long names of metrics, tags and properties: shortened in indexes, because PostgreSQL limits their rows.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_LONGEST = 1000


def upgrade() -> None:
    """Add a column for the whole name of a metric, and shorten what is too long."""
    op.add_column("metrics", sa.Column("long_name", sa.Text))
    connection = op.get_bind()
    # A name of that many bytes has at least a quarter as many characters.
    for identity, name in connection.execute(
        sa.text("SELECT id, name FROM metrics WHERE length(name) > :least"), {"least": _LONGEST // 4}
    ).all():
        if _shorten(name) != name:
            connection.execute(
                sa.text("UPDATE metrics SET name = :short, long_name = :name WHERE id = :id"),
                {"short": _shorten(name), "name": name, "id": identity},
            )
    for seq, kind, name in connection.execute(
        sa.text("SELECT run_seq, kind, name FROM run_labels WHERE length(name) > :least"), {"least": _LONGEST // 4}
    ).all():
        if _shorten(name) != name:
            connection.execute(
                sa.text("UPDATE run_labels SET name = :short WHERE run_seq = :seq AND kind = :kind AND name = :name"),
                {"short": _shorten(name), "seq": seq, "kind": kind, "name": name},
            )


def _shorten(name: str) -> str:
    data = name.encode()
    return name if len(data) <= _LONGEST else f"{name[:100]}#{sha256(data).hexdigest()}"
