"""The links that MLflow's clients print: `/mlflow/WORKSPACE/#/experiments/1/runs/ID` leads to the run in the studio.

Browsers do not send what is behind the `#`, so a script of the page reads it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from starlette.responses import HTMLResponse

from trainmaster.server.api.table import MLFLOW, Route
from trainmaster.server.call import Call
from trainmaster.server.permissions import Permission

_SCRIPT = """
const workspace = location.pathname.split("/")[2] ?? "";
const run = location.hash.match(/\\/runs\\/([0-9A-Za-z_.-]+)/);
location.replace("/w/" + encodeURIComponent(decodeURIComponent(workspace)) + "/runs" + (run ? "/" + run[1] : ""));
"""
_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_PAGE = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trainmaster</title></head>
<body><p>The studio shows this run.</p><script>{_SCRIPT}</script></body></html>
"""
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'sha256-{_HASH}'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}


async def lead_to_studio(call: Call) -> HTMLResponse:
    """A link that MLflow's client printed leads to the studio."""
    return HTMLResponse(_PAGE, headers=_HEADERS)


def link_rows() -> Iterator[Route]:
    """The address of a workspace. The page has no data."""
    for path in (MLFLOW, f"{MLFLOW}/"):
        yield Route(
            "GET",
            path,
            lead_to_studio,
            Permission.PUBLIC,
            "MLflow: a link to a run",
            "mlflow",
            media_type="text/html",
            ignores_query=True,
            is_mlflow=True,
        )
