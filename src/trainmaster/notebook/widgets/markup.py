"""Text as HTML. Pure."""

from __future__ import annotations

from html import escape as as_html

from trainmaster.sdk.display.text import plain_text


def escape(text: str) -> str:
    """The output of a script as HTML text, without control characters."""
    return as_html(plain_text(text))
