"""An object as a notebook shows it at the end of a cell: a table with one row."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def html_table(columns: Mapping[str, str]) -> str:
    """A table with one row. Addresses become links.

    >>> html_table({"Name": "a<b"})
    '<table style="width:100%"><tr><th>Name</th></tr><tr><td>a&lt;b</td></tr></table>'
    """
    heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
    cells = "".join(f"<td>{_cell(value)}</td>" for value in columns.values())
    return f'<table style="width:100%"><tr>{heads}</tr><tr>{cells}</tr></table>'


def _cell(value: str) -> str:
    if value.startswith(("file://", "http://", "https://")):
        return f'<a href="{escape(value)}" target="_blank" rel="noopener">{escape(value)}</a>'
    return escape(value)
