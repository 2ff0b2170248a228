"""Files that a browser draws as pages: HTML and SVG, which may contain anything.

Their scripts run, because plots are made of them, but in a sandbox: the page has an origin of its own, so that it
reaches neither the session of the viewer nor the page around it, and it loads and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from trainmaster.server.files.sending import FileAnswer, FileFacts, Read

LARGEST_PAGE = 64 << 20

_TYPES = {".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".svg": "image/svg+xml"}
# `allow-same-origin` must never be added: with it, the scripts would act as the viewer.
_SANDBOX = "sandbox allow-scripts"
_OWN_PARTS = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; form-action 'none'; base-uri 'none'"
)
POLICY = f"{_SANDBOX}; {_OWN_PARTS}; frame-ancestors 'self'"


def find_page_type(name: str) -> str | None:
    """The type of a file that can be drawn as a page, by its name.

    >>> find_page_type("outputs/Plot.HTML"), find_page_type("outputs/plot.png")
    ('text/html; charset=utf-8', None)
    """
    ending = name.lower().rpartition("/")[2].rpartition(".")[2]
    return _TYPES.get(f".{ending}")


class PageAnswer(FileAnswer):
    """A file that a browser draws in a sandbox. `close` is called at the end, however it comes."""

    def __init__(self, facts: FileFacts, read: Read, close: Callable[[], None], media_type: str) -> None:
        shown = {
            "Content-Type": media_type,
            "Content-Disposition": "inline",
            "Content-Security-Policy": POLICY,
            "Referrer-Policy": "no-referrer",
        }
        super().__init__(facts, read, close, {}, shown)
