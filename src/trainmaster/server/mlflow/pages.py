"""MLflow's own pages, from an installed package `mlflow`: `trainmaster server run --mlflow-ui`.

They are not part of this project, and they only read: the application refuses changes from a browser's session at
MLflow's paths. They are at the same origin as the studio, so they are served only if the administrator says so.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from anyio import to_thread
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trainmaster.job.errors import UserErrorException
from trainmaster.server.api.table import MLFLOW, Handler, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.files.opening import NotBeneathError, open_beneath
from trainmaster.server.files.sending import FileAnswer, FileFacts
from trainmaster.server.identity.sessions import derive_csrf_token
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import make_plain_read

INSTALLED = "installed"
"""The setting for the package of the server's own Python."""
_BUILT = ("server", "js", "build")
# They have styles and functions made from texts, and workers. They talk to nobody but this server.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "frame-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
# MLflow's pages send every cookie with this beginning as a header.
_COOKIE = "mlflow-request-header-X-CSRF-Token"
# The names of the files change with their contents.
_FOREVER = "private, max-age=31536000, immutable"


def find_pages(given: str) -> str:
    """The folder of MLflow's built pages, for the setting `mlflow_ui`. Raises UserErrorException."""
    package = _find_package() if given == INSTALLED else given
    found = os.path.realpath(os.path.join(package, *_BUILT)) if package else ""
    if not found or not os.path.isfile(os.path.join(found, "index.html")):
        raise UserErrorException(
            "MLflow's pages were not found",
            cause=f"There is no package 'mlflow' with pages in {package}." if package else "mlflow is not installed.",
            hint="Install it beside the server: pip install mlflow. Or give the folder of the package: "
            "--mlflow-ui /path/to/site-packages/mlflow. The package mlflow-skinny has no pages.",
        )
    return found


def _find_package() -> str:
    """The folder of the package, which is not imported."""
    spec = importlib.util.find_spec("mlflow")
    return next(iter(spec.submodule_search_locations or ()), "") if spec else ""


def page_rows(folder: str) -> Iterator[Route]:
    """The pages in this folder, below the address of each workspace."""
    index = Path(folder, "index.html").read_text()

    async def show_pages(call: Call) -> Response:
        """MLflow's pages."""
        workspace = call.names["workspace"]
        own = f"/mlflow/{quote(workspace, safe='')}/"
        if not call.caller.is_signed_in:
            return RedirectResponse(f"/login?next={quote(own, safe='')}", 303)
        if not call.caller.may(Permission.READ, workspace):
            raise refuse(403, "you may not do this", cause=f"You may not read the workspace '{workspace[:60]}'.")
        response = HTMLResponse(index, headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"})
        if call.caller.session:
            token, has_tls = derive_csrf_token(call.caller.session), call.parts.settings.has_tls
            response.set_cookie(_COOKIE, token, path=own, samesite="strict", secure=has_tls)
        return response

    async def lead_to_pages(call: Call) -> Response:
        """The address of a workspace leads to MLflow's pages."""
        return RedirectResponse(f"/mlflow/{quote(call.names['workspace'], safe='')}/", 307)

    async def send_page_file(call: Call, name: str) -> Response:
        """A file of MLflow's pages."""
        try:
            file = await to_thread.run_sync(open_beneath, folder, name, [folder])
        except NotBeneathError:
            raise refuse(404, "MLflow's pages have no such file") from None
        facts = FileFacts(name, file.size, file.modified_at, file.identity)
        shown = {"Content-Disposition": "inline", "Content-Security-Policy": _POLICY, "Cache-Control": _FOREVER}
        return FileAnswer(facts, make_plain_read(file), file.close, call.request.headers, shown)

    yield _make_row(f"{MLFLOW}/", show_pages, Permission.PUBLIC)
    yield _make_row(MLFLOW, lead_to_pages, Permission.PUBLIC)
    yield _make_row(f"{MLFLOW}/static-files/{{name:path}}", send_page_file, Permission.READ)


def _make_row(path: str, handler: Handler, permission: Permission) -> Route:
    summary = f"MLflow: {handler.__doc__}"
    return Route("GET", path, handler, permission, summary, "mlflow", ignores_query=True, is_mlflow=True)
