"""Alembic's entry: runs the migrations on the connection that `store.migrate` hands over.

A migration that makes the table `runs` anew (batch mode does, for most changes) has to make its trigger
`runs_stay_ended` anew too: SQLite drops it with the old table.
"""

from alembic import context

from trainmaster.dispatcher.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # The caller holds the one transaction around all of it.
    transactional_ddl=False,
    render_as_batch=True,
)
context.run_migrations()
