"""The routes of everything that is bytes: files, logs, events, journals, contents."""

from __future__ import annotations

from collections.abc import Iterator

from trainmaster.server.api.table import Route
from trainmaster.server.routes import changes, contents, datastore_files, events, journals, logs, run_files, snapshots


def file_rows() -> Iterator[Route]:
    """All of them."""
    for module in (run_files, logs, events, journals, contents, snapshots, datastore_files, changes):
        yield from module.ROUTES
