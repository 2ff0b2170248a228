"""Creates the application of a server from its root folder."""

from __future__ import annotations

from pathlib import Path

from trainmaster.job.errors import RunNotFoundException
from trainmaster.server.api.table import Table
from trainmaster.server.app import App
from trainmaster.server.call import Parts
from trainmaster.server.dispatchers import Dispatchers
from trainmaster.server.errors import HttpError
from trainmaster.server.identity.callers import Callers, RunFacts, RunSource
from trainmaster.server.identity.changes import AuditedChanges
from trainmaster.server.identity.hosts import find_allowed_hosts
from trainmaster.server.identity.service import open_identity
from trainmaster.server.identity.sign_in import make_sign_in
from trainmaster.server.leaders import Leaders
from trainmaster.server.mlflow.artifacts import artifact_rows
from trainmaster.server.mlflow.facts import fact_rows
from trainmaster.server.mlflow.graph_queries import query_rows
from trainmaster.server.mlflow.links import link_rows
from trainmaster.server.mlflow.pages import find_pages, page_rows
from trainmaster.server.mlflow.routes import mlflow_rows
from trainmaster.server.mlflow.unsupported import refusal_rows
from trainmaster.server.routes.files import file_rows
from trainmaster.server.routes.identity import identity_rows
from trainmaster.server.routes.nouns import noun_rows
from trainmaster.server.routes.operations import operation_rows
from trainmaster.server.routes.run_details import ROUTES as RUN_DETAIL_ROUTES
from trainmaster.server.routes.server import server_rows
from trainmaster.server.routes.sign_in import sign_in_rows
from trainmaster.server.routes.studio import studio_rows
from trainmaster.server.routes.views import ROUTES as VIEW_ROUTES
from trainmaster.server.routes.workspaces import workspace_rows
from trainmaster.server.settings import Root, Settings
from trainmaster.server.workspaces import Workspaces
from trainmaster.shared.run_tokens import read_served


def make_table(mlflow_pages: str = "") -> Table:
    """All routes of the server; with the folder of MLflow's pages, also those."""
    return Table(
        [
            *server_rows(),
            *workspace_rows(),
            *noun_rows(),
            *RUN_DETAIL_ROUTES,
            *VIEW_ROUTES,
            *operation_rows(),
            *file_rows(),
            *identity_rows(),
            *sign_in_rows(),
            *studio_rows(),
            *mlflow_rows(),
            *artifact_rows(),
            *fact_rows(),
            *query_rows(),
            *(page_rows(mlflow_pages) if mlflow_pages else link_rows()),
            *refusal_rows(),
        ]
    )


def make_app(root: Root, settings: Settings, workspaces: Workspaces | None = None) -> App:
    """The application that serves the workspaces of this root, or others."""
    identity = open_identity(root.path, settings.database, settings.session_hours)
    sign_in = make_sign_in(settings, identity)
    if workspaces is None:
        elsewhere = {name: Path(folder) for name, folder in settings.workspaces.items()}
        workspaces = Workspaces(root.workspaces, elsewhere, settings.database)
    leaders = Leaders(root.path, bool(settings.database))
    table = make_table(find_pages(settings.mlflow_ui) if settings.mlflow_ui else "")
    parts = Parts(root, settings, table, workspaces, Dispatchers(), identity, sign_in, leaders)
    if not settings.database:
        # This is the only server of the file, so claims in it are of one that has ended.
        identity.keys.release_all()
    hosts = find_allowed_hosts(settings.public_url, settings.hosts)
    callers = Callers(identity, hosts, make_run_source(parts), sign_in.session_cookie, settings.mlflow_open)
    return App(parts, callers, AuditedChanges(identity, settings.audit_days))


def make_run_source(parts: Parts) -> RunSource:
    """Finds what is needed to check the token of a job."""

    def read_key(workspace: str) -> bytes | None:
        try:
            served = read_served(parts.workspaces.get(workspace).folder)
        except HttpError:
            return None
        return served.key if served else None

    async def find_run(workspace: str, run_id: str) -> RunFacts | None:
        folder = parts.workspaces.get(workspace).folder
        if await parts.leaders.find(folder):
            # The request is passed on to the server that has the dispatcher, which checks the token again.
            return RunFacts(True, "")
        try:
            found = await parts.dispatchers.call(folder, "runs.get", {"run_id": run_id})
        except RunNotFoundException:
            return None
        return RunFacts(found["ended_at"] is None, found["submitted_by"])

    return RunSource(read_key, find_run)
