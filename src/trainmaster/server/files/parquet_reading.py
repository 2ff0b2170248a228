"""Reads rows of the Parquet file that is standard input, and prints them as JSON.

A program of its own: a damaged or malicious file may crash the reader or fill the memory, and must not do that to the
server. `parquet_tables.py` starts it.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

MOST_COLUMNS = 200
_LONGEST_CELL = 1000
_MOST_MEMORY = 4 << 30
_MOST_SECONDS = 30
_LARGEST_GROUP = 512 << 20
_MOST_LETTERS = 4 << 20


def main() -> None:
    """`python -m trainmaster.server.files.parquet_reading START COUNT`."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    start, count = map(int, sys.argv[1:3])
    try:
        answer = read_rows(start, count)
    except ImportError:
        answer = {"error": "Tables in Parquet files are shown if the package pyarrow is installed on the server."}
    except (OSError, ValueError, TypeError, LookupError, RuntimeError, MemoryError, OverflowError) as error:
        # Those of pyarrow are derived from these.
        answer = {"error": f"It cannot be read: {str(error)[:500]}"}
    print(json.dumps(answer))


def read_rows(start: int, count: int) -> dict[str, Any]:
    """Columns, and `count` rows from the row `start` on."""
    from pyarrow import parquet  # type: ignore[import-untyped]

    with open(0, "rb", closefd=False) as source:
        file = parquet.ParquetFile(source)
        names = [field.name for field in file.schema_arrow][:MOST_COLUMNS]
        columns = [{"name": name[:200], "type": str(file.schema_arrow.field(name).type)[:200]} for name in names]
        total = file.metadata.num_rows
        found: list[list[str | None]] = []
        first = 0
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            if first + group.num_rows > start and len(found) < count:
                if group.total_byte_size > _LARGEST_GROUP:
                    return {"error": "Its groups of rows are too large to be shown."}
                wanted = count - len(found)
                found += _read_group(file, number, names, max(0, start - first), wanted)
            first += group.num_rows
        found = limit_rows(found)
        more = len(file.schema_arrow.names) - len(names)
        return {"columns": columns, "rows": found, "row_count": total, "hidden_columns": more}


def _read_group(file: Any, number: int, names: list[str], skipped: int, count: int) -> list[list[str | None]]:
    rows: list[list[str | None]] = []
    for batch in file.iter_batches(batch_size=1024, row_groups=[number], columns=names, use_threads=False):
        if skipped >= batch.num_rows:
            skipped -= batch.num_rows
            continue
        part = batch.slice(skipped, count - len(rows))
        skipped = 0
        columns = [part.column(name).to_pylist() for name in names]
        rows += [[show(value) for value in row] for row in zip(*columns, strict=True)]
        if len(rows) >= count:
            break
    return rows


def limit_rows(rows: list[list[str | None]], most: int = _MOST_LETTERS) -> list[list[str | None]]:
    """The first rows, as many as have at most so many letters; always one.

    >>> limit_rows([["ab"], ["cd"], ["e"]], most=4)
    [['ab'], ['cd']]
    """
    left = most
    for number, row in enumerate(rows):
        left -= sum(len(cell or "") for cell in row)
        if left < 0:
            return rows[: max(1, number)]
    return rows


def show(value: Any) -> str | None:
    """A value as a text.

    >>> show(0.1), show(None), show(b"ab"), show([1, 2])
    ('0.1', None, '6162', '[1, 2]')
    """
    if value is None:
        return None
    if isinstance(value, bytes):
        return value[: _LONGEST_CELL // 2].hex()
    return str(value)[:_LONGEST_CELL]


if __name__ == "__main__":
    main()
