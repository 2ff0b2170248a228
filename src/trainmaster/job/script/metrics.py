"""Journal records as `get_metrics()` gives them: v1's shape."""

_SERIES = ("metric", "list")
_TABLES = ("row", "table")
_REFERENCES = ("image", "json")


def shape_metrics(records, reference):
    """Metric name to value. `reference(kind, file name)` is what stands for a picture or a structured metric.

    Logged once is the value, several times the list in order; rows and tables are a dict of columns, with
    None where a row lacks a column.

    >>> shape_metrics([{"k": "metric", "n": "loss", "v": 2}, {"k": "metric", "n": "loss", "v": 1}], None)
    {'loss': [2, 1]}
    """
    series: "dict[str, list[object]]" = {}
    tables: "dict[str, list[dict[str, object]]]" = {}
    for record in records:
        kind, name, value = record.get("k"), record.get("n"), record.get("v")
        if kind in _SERIES:
            series.setdefault(name, []).extend(value if kind == "list" else [value])
        elif kind in _REFERENCES:
            series.setdefault(name, []).append(reference(kind, value))
        elif kind in _TABLES:
            rows = [value] if kind == "row" else _rows(value)
            tables.setdefault(name, []).extend(rows)
    shaped = {name: _single(found) for name, found in series.items() if found}
    shaped.update((name, _columns(rows)) for name, rows in tables.items())
    return shaped


def _rows(columns):
    names = list(columns)
    return [dict(zip(names, cells)) for cells in zip(*columns.values())]  # noqa: B905


def _columns(rows):
    names: "list[str]" = []
    for row in rows:
        names.extend(name for name in row if name not in names)
    return {name: _single([row.get(name) for row in rows]) for name in names}


def _single(found):
    return found[0] if len(found) == 1 else found
