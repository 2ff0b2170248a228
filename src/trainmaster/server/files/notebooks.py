"""The cells of a notebook as plain data: texts and pictures, nothing that a browser would run. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Literal

from trainmaster.server.files.pictures import find_picture_type
from trainmaster.shared.terminal import without_escapes

LARGEST_NOTEBOOK = 32 << 20
_LONGEST_TEXT = 50_000
_LARGEST_PICTURE = 2 << 20
_MOST_OUTPUTS = 50
_MOST_BYTES = 8 << 20
"""Of all cells in one answer."""


@dataclass(frozen=True)
class CellOutput:
    """What a cell of a notebook printed or drew."""

    kind: Literal["text", "error", "image"]
    text: str = ""
    media_type: str = ""
    data: str = ""
    """A picture as base64."""


@dataclass(frozen=True)
class NotebookCell:
    """A cell of a notebook."""

    kind: Literal["code", "markdown", "raw"]
    source: str
    number: int | None = None
    """How many cells had run when it ran."""
    outputs: tuple[CellOutput, ...] = ()


@dataclass(frozen=True)
class NotebookPart:
    """Some cells of a notebook."""

    language: str
    cells: tuple[NotebookCell, ...]
    cell_count: int


def read_notebook(data: bytes, start: int, count: int) -> tuple[NotebookPart, int]:
    """At most `count` cells from the number `start` on, and the number of the next. Raises ValueError."""
    try:
        notebook = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("it has no cells")
    found: list[NotebookCell] = []
    size = 0
    for cell in cells[start : start + count]:
        shown = _read_cell(cell)
        size += len(shown.source) + sum(len(each.text) + len(each.data) for each in shown.outputs)
        if found and size > _MOST_BYTES:
            break
        found.append(shown)
    return NotebookPart(_read_language(notebook), tuple(found), len(cells)), start + len(found)


def _read_language(notebook: dict[str, Any]) -> str:
    metadata = _object(notebook.get("metadata"))
    language = _object(metadata.get("language_info")).get("name") or _object(metadata.get("kernelspec")).get("language")
    return str(language or "")[:100]


def _read_cell(cell: Any) -> NotebookCell:
    given = _object(cell)
    kind = given.get("cell_type")
    number = given.get("execution_count")
    outputs = given.get("outputs")
    shown = [_read_output(_object(each)) for each in outputs[:_MOST_OUTPUTS]] if isinstance(outputs, list) else []
    return NotebookCell(
        "code" if kind == "code" else "markdown" if kind == "markdown" else "raw",
        _join(given.get("source")),
        number if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 2**53 else None,
        tuple(each for each in shown if each is not None),
    )


def _read_output(output: dict[str, Any]) -> CellOutput | None:
    kind = output.get("output_type")
    if kind == "stream":
        return CellOutput("text", without_escapes(_join(output.get("text"))))
    if kind == "error":
        trace = _join(output.get("traceback"), "\n") or f"{output.get('ename', '')}: {output.get('evalue', '')}"
        return CellOutput("error", without_escapes(trace)[:_LONGEST_TEXT])
    data = _object(output.get("data"))
    for media_type in ("image/png", "image/jpeg", "image/gif"):
        picture = _read_picture(data.get(media_type))
        if picture is not None:
            return picture
    text = _join(data.get("text/plain"))
    return CellOutput("text", without_escapes(text)) if text else None


def _read_picture(given: Any) -> CellOutput | None:
    """A picture by its bytes, whatever the notebook says it is."""
    text = "".join(_join(given, longest=2 * _LARGEST_PICTURE).split()) if given else ""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = find_picture_type(data)
    if media_type is None or len(data) > _LARGEST_PICTURE:
        return None
    return CellOutput("image", media_type=media_type, data=text)


def _join(lines: Any, separator: str = "", longest: int = _LONGEST_TEXT) -> str:
    """Texts in notebooks are lists of lines, or texts."""
    if isinstance(lines, list):
        return separator.join(line for line in lines if isinstance(line, str))[:longest]
    return lines[:longest] if isinstance(lines, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
