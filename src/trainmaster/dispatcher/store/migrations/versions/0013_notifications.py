"""Notifications: channels, the runs that have ended, and what is not delivered yet.

Frozen: what a released migration does never changes, so nothing is imported from the schema of today.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ENDED = "('Canceled', 'Completed', 'Failed')"
# Children are only reported if they ask for it.
_WANTED = f"""NEW.status IN {_ENDED} AND OLD.status NOT IN {_ENDED}
    AND (NEW.parent_id IS NULL OR NEW.tags LIKE '%"notify"%')"""


def upgrade() -> None:
    """Create the tables, and the trigger that notes the end of runs while there are channels."""
    op.create_table(
        "channels",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("events", sa.Text, nullable=False),
        sa.Column("experiment", sa.Text, nullable=False),
        sa.Column("only_chosen", sa.Boolean, nullable=False),
        sa.Column("is_signed", sa.Boolean, nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("last_sent_at", sa.Float(53)),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_channels"),
    )
    op.create_table(
        "run_ends",
        sa.Column("seq", _Key, nullable=False),
        sa.Column("run_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_run_ends"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("channel", sa.String(64), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Float(53), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    _create_trigger()


def _create_trigger() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"""
            CREATE TRIGGER runs_note_end AFTER UPDATE OF status ON runs
            WHEN {_WANTED} AND EXISTS (SELECT 1 FROM channels)
            BEGIN INSERT INTO run_ends (run_id) VALUES (NEW.id); END
        """)
        return
    op.execute("""
        CREATE FUNCTION runs_note_end() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO run_ends (run_id) SELECT NEW.id WHERE EXISTS (SELECT 1 FROM channels);
            RETURN NULL;
        END $$
    """)
    op.execute(f"""
        CREATE TRIGGER runs_note_end AFTER UPDATE OF status ON runs FOR EACH ROW
        WHEN ({_WANTED}) EXECUTE FUNCTION runs_note_end()
    """)
