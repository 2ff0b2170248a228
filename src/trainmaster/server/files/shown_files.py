"""A part of a file as plain data, for a page that shows it: text, a table, a notebook or a summary of a model.

Whatever the file contains, the answer is JSON of a limited size. A picture is only named here; the page shows it from
the route of the file, which checks its bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from anyio import to_thread

from trainmaster.server.files.notebooks import LARGEST_NOTEBOOK, NotebookPart, read_notebook
from trainmaster.server.files.onnx_summaries import OnnxSummary, summarize_onnx
from trainmaster.server.files.parquet_tables import UnreadableTableError, read_parquet
from trainmaster.server.files.pictures import LARGEST_PICTURE, find_picture_type

Kind = Literal["text", "table", "notebook", "onnx", "image", "none"]
Read = Callable[[int, int], bytes]

MOST_BYTES = 1 << 20
MOST_ROWS = 1000
_LONGEST_CELL = 1000
_MOST_CELLS = 200
_HEAD = 8192
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class TableColumn:
    """A column of a table."""

    name: str
    type: str = ""


@dataclass(frozen=True)
class TablePart:
    """Some rows of a table."""

    columns: tuple[TableColumn, ...]
    """Empty for a later part of a CSV file: they are those of its first part."""
    rows: tuple[tuple[str | None, ...], ...]
    row_count: int | None = None
    """Of the whole table, if the file says it."""
    hidden_columns: int = 0


@dataclass(frozen=True)
class FilePreview:
    """A part of a file. One of `text`, `table`, `notebook` and `onnx` is there, as `kind` says."""

    kind: Kind
    size: int
    """Of the whole file, in bytes."""
    notice: str = ""
    """Why there is nothing to show, or what is missing."""
    media_type: str = ""
    """Of a picture, which the route of the file gives with `preview=image`."""
    next: int | None = None
    """Give it as `start` for the next part; null if there is none."""
    text: str = ""
    table: TablePart | None = None
    notebook: NotebookPart | None = None
    onnx: OnnxSummary | None = None


@dataclass(frozen=True)
class Wish:
    """Which part of a file is wanted."""

    start: int = 0
    """A byte of a text or a CSV file, a row of a Parquet file, a cell of a notebook."""
    size: int = 65536
    """Bytes of a text."""
    rows: int = 100
    """Of a table, or cells of a notebook."""


async def show_file(
    name: str, handle: int, size: int, read: Read, wish: Wish, *, has_secrets: bool = False
) -> FilePreview:
    """The part of an open file that is wanted. `read` reads it as clients may see it, which hides its secrets."""
    # No file has more bytes, rows or cells than that; the kernel refuses to read at larger numbers.
    wish = replace(wish, start=min(wish.start, size))
    head = await to_thread.run_sync(read, 0, _HEAD)
    kind = choose_kind(name, head)
    if kind == "parquet" and has_secrets:
        # Its values are compressed, so that `read` does not find them.
        return FilePreview("none", size, "Secrets cannot be hidden in a Parquet file, so it is not shown among logs.")
    if kind == "parquet":
        return await _show_parquet(handle, size, wish)
    media_type = find_picture_type(head)
    if kind == "image":
        notice = "It is too large to be shown." if size > LARGEST_PICTURE else ""
        return FilePreview("image", size, notice, media_type or "")
    if kind == "none":
        return FilePreview("none", size, "It is not a text, and there is no preview for its kind.")
    return await to_thread.run_sync(partial(_show, kind, name, size, read, wish))


def choose_kind(name: str, head: bytes) -> str:
    """How a file is shown, by its name and its first bytes.

    >>> choose_kind("a.csv", b"x,y"), choose_kind("a.ipynb", b"{}"), choose_kind("a.bin", b"\\0"), choose_kind("a", b"")
    ('table', 'notebook', 'none', 'text')
    """
    ending = name.lower().rpartition("/")[2]
    if find_picture_type(head):
        return "image"
    if head.startswith(b"PAR1"):
        return "parquet"
    if ending.endswith(".onnx"):
        return "onnx"
    if b"\0" in head:
        return "none"
    if ending.endswith(".ipynb"):
        return "notebook"
    return "table" if ending.endswith(tuple(_SEPARATORS)) else "text"


def _show(kind: str, name: str, size: int, read: Read, wish: Wish) -> FilePreview:
    notice = ""
    try:
        if kind == "onnx":
            return FilePreview("onnx", size, onnx=summarize_onnx(read, size))
        if kind == "notebook":
            return _show_notebook(size, read, wish)
    except (ValueError, UnicodeError) as error:
        notice = f"It cannot be shown as what its name says: {str(error)[:300]}."
    if kind == "onnx":
        return FilePreview("none", size, notice)
    if kind == "table":
        return _show_csv(name, size, read, wish)
    return replace(show_text(read(wish.start, _limit(wish.size)), size, wish.start), notice=notice)


def show_text(piece: bytes, size: int, start: int) -> FilePreview:
    """A piece of a text that begins at the byte `start`. It ends with a line, if there are several pieces.

    >>> shown = show_text(b"one\\ntw", size=9, start=0)
    >>> shown.text, shown.next
    ('one\\n', 4)
    """
    if piece and start + len(piece) < size:
        piece = piece[: piece.rfind(b"\n") + 1] or _whole_letters(piece)
    end = start + len(piece)
    further = end if piece and end < size else None
    return FilePreview("text", size, next=further, text=piece.decode("utf-8", "replace"))


def _whole_letters(piece: bytes) -> bytes:
    """Without the first bytes of a letter whose others are missing."""
    for count in range(1, min(4, len(piece))):
        if piece[-count] & 0xC0 == 0xC0:
            return piece[:-count]
        if not piece[-count] & 0x80:
            break
    return piece


def _show_csv(name: str, size: int, read: Read, wish: Wish) -> FilePreview:
    piece = read(wish.start, MOST_BYTES)
    is_rest = wish.start + len(piece) >= size
    rows, used = read_csv(piece, _separator_of(name), _limit_rows(wish.rows) + (wish.start == 0), is_rest)
    columns: list[list[str]] = []
    if wish.start == 0 and rows:
        columns, rows = rows[:1], rows[1:]
    named = tuple(TableColumn(cell) for cell in columns[0]) if columns else ()
    end = wish.start + used
    widest = max((len(row) for row in (*columns, *rows)), default=0)
    part = TablePart(named, tuple(map(tuple, rows)), hidden_columns=max(0, widest - _MOST_CELLS))
    cut = TablePart(
        part.columns[:_MOST_CELLS], tuple(row[:_MOST_CELLS] for row in part.rows), None, part.hidden_columns
    )
    return FilePreview("table", size, next=end if used and end < size else None, table=cut)


def read_csv(piece: bytes, separator: str, count: int, is_rest: bool) -> tuple[list[list[str]], int]:
    """At most `count` rows, and how many bytes they take. A line that may be cut is left for the next piece.

    >>> read_csv(b'x,y\\n1,"a\\nb"\\n2,', ",", 10, is_rest=False)
    ([['x', 'y'], ['1', 'a\\nb']], 12)
    """
    lines = piece.splitlines(keepends=True)
    if not is_rest and lines and len(lines) > 1:
        lines.pop()
    taken = 0

    def take() -> Iterator[str]:
        nonlocal taken
        for line in lines:
            taken += len(line)
            yield line.decode("utf-8", "replace")

    rows: list[list[str]] = []
    used = 0
    reader = csv.reader(take(), delimiter=separator)
    try:
        for row in reader:
            rows.append([cell[:_LONGEST_CELL] for cell in row])
            used = taken
            if len(rows) == count:
                break
    except csv.Error:
        # A cell of more than 131,072 characters, for example. What follows is shown from the next line on.
        used = taken
    return rows, used


def _separator_of(name: str) -> str:
    return next(each for ending, each in _SEPARATORS.items() if name.lower().endswith(ending))


def _show_notebook(size: int, read: Read, wish: Wish) -> FilePreview:
    if size > LARGEST_NOTEBOOK:
        raise ValueError("it is too large")
    part, following = read_notebook(read(0, size), wish.start, _limit_rows(wish.rows))
    return FilePreview("notebook", size, next=following if following < part.cell_count else None, notebook=part)


async def _show_parquet(handle: int, size: int, wish: Wish) -> FilePreview:
    try:
        found = await read_parquet(handle, wish.start, _limit_rows(wish.rows))
    except UnreadableTableError as error:
        return FilePreview("none", size, str(error))
    rows = tuple(tuple(row) for row in found["rows"])
    columns = tuple(TableColumn(each["name"], each["type"]) for each in found["columns"])
    end = wish.start + len(rows)
    table = TablePart(columns, rows, found["row_count"], found["hidden_columns"])
    return FilePreview("table", size, next=end if rows and end < found["row_count"] else None, table=table)


def _limit(size: int) -> int:
    return max(1, min(size, MOST_BYTES))


def _limit_rows(rows: int) -> int:
    return max(1, min(rows, MOST_ROWS))
