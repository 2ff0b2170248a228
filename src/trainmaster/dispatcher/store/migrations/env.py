"""Alembic's entry point: runs the migrations on the connection that `store.migrate` passes in.

A migration that recreates the table `runs` (as batch mode does for most changes) has to recreate its trigger
`runs_stay_ended` too: SQLite drops it with the old table.
"""

from alembic import context

from trainmaster.dispatcher.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # The caller has begun a transaction around all migrations.
    transactional_ddl=False,
    render_as_batch=True,
)
context.run_migrations()
