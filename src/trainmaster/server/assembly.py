"""Creates the application of a server from its root folder."""

from __future__ import annotations

from pathlib import Path

from trainmaster.server.app import App
from trainmaster.server.call import Parts
from trainmaster.server.dispatchers import Dispatchers
from trainmaster.server.identity.first_token import FirstToken
from trainmaster.server.routes.files import file_rows
from trainmaster.server.routes.operations import operation_rows
from trainmaster.server.routes.workspaces import workspace_rows
from trainmaster.server.settings import Root, Settings
from trainmaster.server.table import Table
from trainmaster.server.workspaces import Workspaces


def make_table() -> Table:
    """All routes of the server."""
    return Table([*workspace_rows(), *operation_rows(), *file_rows()])


def make_app(root: Root, settings: Settings) -> App:
    """The application that serves the workspaces of this root."""
    elsewhere = {name: Path(folder) for name, folder in settings.workspaces.items()}
    parts = Parts(root, settings, Workspaces(root.workspaces, elsewhere), Dispatchers())
    return App(make_table(), parts, FirstToken(root))
