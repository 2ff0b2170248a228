"""The pages of the studio. They contain no data: what they show, they ask for by the routes of the API."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response

from trainmaster.server.api.table import Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.permissions import Permission
from trainmaster.server.studio.pages import INDEX, read_pages
from trainmaster.server.studio.sign_in_page import describe_ancestors

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Uncertain contents of runs are shown in frames that have the headers of their own routes.
_POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'"
# The name of the folder changes with its contents.
_FOREVER = "public, max-age=31536000, immutable"


async def show_page(call: Call) -> Response:
    """Any page of the studio: which one is decided in the browser, by the address."""
    pages = read_pages()
    if pages is None:
        raise refuse(404, "the studio is not part of this installation", hint="In a checkout: make studio.")
    return _answer(call, INDEX, pages.files[INDEX], "no-cache")


async def show_other_page(call: Call, rest: str) -> Response:
    """Any page of a workspace."""
    return await show_page(call)


async def send_asset(call: Call, digest: str, name: str) -> Response:
    """A script, style or picture of the pages."""
    pages = read_pages()
    if pages is None or digest != pages.digest or name not in pages.files:
        raise refuse(404, "the pages have no such file", hint="Load the page again: the server has another version.")
    return _answer(call, name, pages.files[name], _FOREVER)


def _answer(call: Call, name: str, contents: bytes, caching: str) -> Response:
    frames = describe_ancestors(call.parts.settings.frame_ancestors, "'self'")
    headers = {"Content-Security-Policy": f"{_POLICY}; {frames}", "Cache-Control": caching}
    kind = _TYPES["." + name.rpartition(".")[2]]
    return Response(contents, headers=headers, media_type=kind)


def studio_rows() -> Iterator[Route]:
    """The routes of this module."""
    public, tag = Permission.PUBLIC, "studio"
    for path, handler in (("/", show_page), ("/w/{rest:path}", show_other_page)):
        yield Route(
            "GET",
            path,
            handler,
            public,
            "A page of the studio",
            tag,
            media_type="text/html",
            ignores_query=True,
            statuses=(404,),
        )
    kinds = "text/javascript,text/css,image/svg+xml,text/html"
    path = "/assets/{digest}/{name}"
    yield Route("GET", path, send_asset, public, "A file of the pages", tag, media_type=kinds, statuses=(404,))
