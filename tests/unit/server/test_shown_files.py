"""Parts of files as plain data: what is shown, and what a malicious file cannot do."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainmaster.server.files.notebooks import read_notebook
from trainmaster.server.files.onnx_summaries import PagedBytes, summarize_onnx
from trainmaster.server.files.shown_files import FilePreview, Wish, read_csv, show_file

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def show(folder: Path, name: str, data: bytes, **wish: int) -> FilePreview:
    path = folder / name
    path.write_bytes(data)
    handle = os.open(path, os.O_RDONLY)
    try:
        read = lambda start, size: os.pread(handle, size, start)  # noqa: E731
        return asyncio.run(show_file(name, handle, len(data), read, Wish(**wish)))
    finally:
        os.close(handle)


# Texts


def test_a_long_text_is_read_in_pieces_that_end_with_lines(tmp_path):
    data = "".join(f"line {number} ä\n" for number in range(1000)).encode()
    found, start = "", 0
    while start is not None:
        part = show(tmp_path, "a.txt", data, start=start, size=1000)
        assert part.kind == "text" and part.text.endswith("\n") and part.size == len(data)
        found, start = found + part.text, part.next
    assert found == data.decode()


def test_a_text_without_line_ends_is_cut_between_letters(tmp_path):
    part = show(tmp_path, "a.txt", "ä".encode() * 50, size=33)
    assert part.text == "ä" * 16 and part.next == 32


def test_active_content_is_text(tmp_path):
    for name, data in (("a.html", b"<script>alert(1)</script>"), ("a.svg", b"<svg onload=alert(1)>")):
        part = show(tmp_path, name, data)
        assert (part.kind, part.text) == ("text", data.decode())
    assert show(tmp_path, "a.html", PNG).media_type == "image/png"
    assert show(tmp_path, "a.bin", b"\0\1").kind == "none"
    assert show(tmp_path, "empty", b"") == FilePreview("text", 0)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.ipynb"])
def test_after_the_end_there_is_nothing(tmp_path, name):
    part = show(tmp_path, name, b'{"cells": []}', start=2**63 - 2)
    assert part.next is None and not part.text


# Tables


def test_a_table_is_read_in_parts(tmp_path):
    data = ("x,y\n" + "".join(f'{number},"a\nb"\n' for number in range(250))).encode()
    first = show(tmp_path, "a.csv", data, rows=100)
    assert [column.name for column in first.table.columns] == ["x", "y"] and len(first.table.rows) == 100
    second = show(tmp_path, "a.csv", data, rows=100, start=first.next)
    assert second.table.columns == () and second.table.rows[0] == ("100", "a\nb")
    third = show(tmp_path, "a.csv", data, rows=100, start=second.next)
    assert len(third.table.rows) == 50 and third.next is None


def test_odd_tables(tmp_path):
    wide = show(tmp_path, "a.tsv", b"\t".join([b"c"] * 500) + b"\n")
    assert len(wide.table.columns) == 200 and wide.table.hidden_columns == 300
    long = show(tmp_path, "a.csv", b"a,b\n" + b"x" * 200_000 + b",1\n2,3\n")
    assert long.kind == "table"
    assert show(tmp_path, "a.csv", b"").table.rows == ()
    assert read_csv(b"a,\xff\n", ",", 10, True) == ([["a", "\ufffd"]], 4)


# Parquet


@pytest.fixture
def parquet(tmp_path) -> bytes:
    import pyarrow
    from pyarrow import parquet

    columns = {"n": list(range(2500)), "text": [None if n % 2 else f"<b>{n}</b>" for n in range(2500)]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "made.parquet", row_group_size=1000)
    return (tmp_path / "made.parquet").read_bytes()


def test_parquet(tmp_path, parquet):
    part = show(tmp_path, "a.parquet", parquet, rows=3)
    assert [(column.name, column.type) for column in part.table.columns] == [("n", "int64"), ("text", "string")]
    assert part.table.rows == (("0", "<b>0</b>"), ("1", None), ("2", "<b>2</b>"))
    assert part.table.row_count == 2500 and part.next == 3
    # Over the end of a group of rows.
    part = show(tmp_path, "a.parquet", parquet, rows=4, start=1998)
    assert [row[0] for row in part.table.rows] == ["1998", "1999", "2000", "2001"]
    part = show(tmp_path, "a.parquet", parquet, rows=1000, start=2499)
    assert [row[0] for row in part.table.rows] == ["2499"] and part.next is None


def test_a_damaged_parquet_file_is_refused_in_words(tmp_path, parquet):
    for data in (parquet[:-20], b"PAR1" * 10, parquet[:100] + b"\xff" * 200 + parquet[300:]):
        part = show(tmp_path, "a.parquet", data)
        assert part.kind in ("none", "table") and (part.table or part.notice)


def test_without_pyarrow_it_says_so(tmp_path, parquet, monkeypatch):
    (tmp_path / "pyarrow.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "pyarrow" in show(tmp_path, "a.parquet", parquet).notice


# Notebooks


def make_notebook(*cells: Any) -> bytes:
    return json.dumps({"cells": list(cells), "metadata": {"kernelspec": {"language": "python"}}}).encode()


def code(*outputs: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": ["a = 1\n", "a"], "execution_count": 3, "outputs": list(outputs)}


def test_a_notebook_is_its_texts_and_pictures(tmp_path):
    picture = base64.b64encode(PNG).decode()
    data = make_notebook(
        {"cell_type": "markdown", "source": "# Title <script>"},
        code(
            {"output_type": "stream", "text": ["one\n", "\x1b[31mtwo"]},
            {"output_type": "display_data", "data": {"image/png": picture, "text/plain": "<Figure>"}},
            {"output_type": "execute_result", "data": {"text/html": "<script>", "text/plain": "1"}},
            {"output_type": "display_data", "data": {"text/html": "<script>", "image/svg+xml": "<svg>"}},
            {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\x1b[0mValueError: no"]},
        ),
    )
    part = show(tmp_path, "a.ipynb", data)
    assert part.kind == "notebook" and part.notebook.language == "python" and part.notebook.cell_count == 2
    title, cell = part.notebook.cells
    assert (title.kind, title.source) == ("markdown", "# Title <script>")
    assert (cell.source, cell.number) == ("a = 1\na", 3)
    assert [(each.kind, each.text) for each in cell.outputs] == [
        ("text", "one\ntwo"),
        ("image", ""),
        ("text", "1"),
        ("error", "ValueError: no"),
    ]
    assert cell.outputs[1].data == picture and cell.outputs[1].media_type == "image/png"


def test_a_picture_in_a_notebook_is_one_by_its_bytes():
    fake = base64.b64encode(b"<svg onload=alert(1)>").decode()
    part, _ = read_notebook(make_notebook(code({"output_type": "display_data", "data": {"image/png": fake}})), 0, 9)
    assert part.cells[0].outputs == ()


def test_notebooks_are_read_in_parts(tmp_path):
    data = make_notebook(*(code() for _ in range(5)))
    part = show(tmp_path, "a.ipynb", data, rows=2, start=2)
    assert len(part.notebook.cells) == 2 and part.next == 4


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b'{"cells": 3}', b"[" * 100_000, b"\xff\xfe", b"NaN"],
)
def test_what_is_no_notebook_is_text(tmp_path, data):
    part = show(tmp_path, "a.ipynb", data)
    assert part.kind == "text" and part.notice


def test_odd_cells_do_no_harm():
    odd = [3, None, {"source": 3, "outputs": 3}, {"cell_type": "code", "outputs": [1, {"data": []}]}]
    part, _ = read_notebook(make_notebook(*odd), 0, 100)
    assert [cell.kind for cell in part.cells] == ["raw", "raw", "raw", "code"]


# ONNX


def field(number: int, data: bytes | int) -> bytes:
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def make_onnx() -> bytes:
    shape = field(1, field(2, b"batch")) + field(1, field(1, 4))
    tensor = lambda name: field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))  # noqa: E731
    nodes = [field(4, name) for name in (b"MatMul", b"Relu", b"MatMul")] + [field(4, b"Gelu") + field(7, b"my.ops")]
    graph = b"".join(field(1, node) for node in nodes)
    graph += field(5, field(1, 4) + field(1, 8) + field(2, 1) + field(8, b"w") + field(9, b"\0" * 128))
    graph += field(5, field(1, varint(3) + varint(300)) + field(8, b"packed"))
    graph += field(11, tensor(b"x")) + field(12, tensor(b"y"))
    return field(2, b"pytorch") + field(7, graph) + field(8, field(2, 17))


def test_onnx(tmp_path):
    part = show(tmp_path, "model.onnx", make_onnx())
    assert part.kind == "onnx" and part.onnx.opset == 17 and part.onnx.producer == "pytorch"
    assert [(each.name, each.type, each.shape) for each in part.onnx.inputs] == [("x", "float32", ("batch", "4"))]
    assert [each.name for each in part.onnx.outputs] == ["y"]
    assert [(each.operator, each.count) for each in part.onnx.operators] == [
        ("MatMul", 2),
        ("Relu", 1),
        ("my.ops.Gelu", 1),
    ]
    assert part.onnx.nodes == 4 and part.onnx.weights == 32 + 900


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"\xff" * 100, make_onnx()[:-30], b"text", field(7, b"\x08")])
def test_what_is_no_onnx_file_is_refused_in_words(tmp_path, data):
    part = show(tmp_path, "model.onnx", data)
    assert part.kind == "none" and part.notice


def test_only_so_much_of_a_file_is_read():
    with pytest.raises(ValueError, match="too large"):
        data = PagedBytes(lambda start, size: bytes(size), 1 << 40, most=1 << 20)
        for at in range(0, 1 << 40, 1 << 16):
            data[at]
    with pytest.raises(ValueError, match="shorter"):
        summarize_onnx(lambda start, size: b"", 100)
