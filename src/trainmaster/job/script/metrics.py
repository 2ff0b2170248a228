"""Metrics in the shape that `run.get_metrics()` returns them: v1's."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Mapping, Sequence

    # From the kind of a metric and the name of a file to what stands for it.
    Reference = Callable[[str, str], Any]

# The kinds of records in a journal, and the kind of metric they make.
_KINDS = {"metric": "scalar", "list": "scalar", "row": "row", "table": "row", "image": "image", "json": "json"}


def file_reference(kind: str, file: str) -> str:
    """What stands for a file of the run, if its contents are not read."""
    return "aml://artifactId/" + file


def metric_value(name: str, kind: str, values: "Sequence[Any]", reference: "Reference" = file_reference) -> "Any":
    """The value of a metric as v1 returns it.

    Logged once: the value; several times: the list, in order. Rows: a dict from column to value or list, None
    in a missing cell. Images and structured metrics: a reference to the run's file.

        >>> metric_value("loss", "scalar", (0.5, 0.25))
        [0.5, 0.25]
        >>> metric_value("lr", "row", ({"step": 1}, {"step": 2, "lr": 0.1}))
        {'step': [1, 2], 'lr': [None, 0.1]}
        >>> metric_value("plot", "image", ("plot_1700000000.png",))
        'aml://artifactId/plot_1700000000.png'
    """
    if kind == "row":
        return _columns(name, values)
    if kind in ("image", "json"):
        return _one_or_all([reference(kind, value) if isinstance(value, str) else value for value in values])
    return _one_or_all(list(values))


def shape_records(records: "Iterable[Mapping[str, Any]]", reference: "Reference" = file_reference) -> "dict[str, Any]":
    """Metric name to value, from the records of a journal; the first record decides about the kind of a metric.

    >>> shape_records([{"k": "metric", "n": "loss", "v": 2}, {"k": "metric", "n": "loss", "v": 1}])
    {'loss': [2, 1]}
    """
    kinds: "dict[str, str]" = {}
    series: "dict[str, list[Any]]" = {}
    for record in records:
        if record.get("k") not in _KINDS:
            continue
        name = record["n"]
        kinds.setdefault(name, _KINDS[record["k"]])
        series.setdefault(name, []).extend(_values(record["k"], record.get("v")))
    return {name: metric_value(name, kinds[name], found, reference) for name, found in series.items() if found}


def _values(kind: str, value: "Any") -> "list[Any]":
    if kind == "list":
        return list(value)
    if kind == "table":
        return [dict(zip(value, cells)) for cells in zip(*value.values())]  # noqa: B905
    return [value]


def _one_or_all(values: "list[Any]") -> "Any":
    return values[0] if len(values) == 1 else values


def _columns(name: str, values: "Sequence[Any]") -> "dict[str, Any]":
    # A scalar that was logged under the name of a table is a row with one cell, named as the metric.
    rows = [value if hasattr(value, "items") else {name: value} for value in values]
    columns = dict.fromkeys(column for row in rows for column in row)
    return {column: _one_or_all([row.get(column) for row in rows]) for column in columns}
