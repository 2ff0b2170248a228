"""Runs that were found: an iterator, as in v1, that can also become a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trainmaster.job.errors import UserErrorException

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

R = TypeVar("R")

COLUMNS = (
    "id",
    "name",
    "experiment",
    "number",
    "status",
    "type",
    "target",
    "user",
    "parent",
    "created",
    "started",
    "ended",
    "duration",
    "arguments",
    "metrics",
    "tags",
)
"""The columns of a table of runs that asks for none."""

TIMES = frozenset({"created", "started", "ended", "archived"})
_GROUPS = {"arguments": "arg", "metrics": "metric", "tags": "tag", "properties": "property"}
_AT_ONCE = 500


class RunList(Iterator[R], Generic[R]):
    """Runs, one after the other, fetched page by page.

    >>> for run in Run.list(experiment): ...                       # doctest: +SKIP
    >>> frame = Run.list(experiment, tags="good").to_pandas()      # doctest: +SKIP
    """

    def __init__(self, workspace: Workspace, runs: Iterator[R]) -> None:
        self._workspace = workspace
        self._runs = runs

    def __iter__(self) -> RunList[R]:
        return self

    def __next__(self) -> R:
        return next(self._runs)

    def to_pandas(self) -> Any:
        """The runs that were not taken yet as a pandas DataFrame; ours, not v1's.

        It has a row for each run, and the columns `id`, `name`, `experiment`, `status`, `created`, `duration` (in
        seconds), ...; `arg.NAME` for each argument, `metric.NAME` for the last value of each metric, and `tag.NAME`.
        """
        try:
            import pandas
        except ImportError:
            raise UserErrorException(
                "to_pandas needs pandas, which is not installed here", hint="pip install pandas"
            ) from None
        ids: list[str] = [run.id for run in self]  # type: ignore[attr-defined]
        rows = [expand_row(row) for row in read_rows(self._workspace, ids, COLUMNS)]
        frame = pandas.DataFrame(rows, columns=list_columns(rows, COLUMNS))
        for name in TIMES & set(frame.columns):
            frame[name] = pandas.to_datetime(frame[name], unit="s", utc=True)
        return frame


def read_rows(workspace: Workspace, ids: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The columns of these runs, in this order; runs that were deleted meanwhile are left out."""
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(ids), _AT_ONCE):
        quoted = ", ".join(f'"{run_id}"' for run_id in ids[start : start + _AT_ONCE])
        page = workspace.connection.call(
            "runs.search",
            filter=f"id in ({quoted})",
            columns=list(columns),
            limit=_AT_ONCE,
            children=True,
            archived=True,
        )
        found |= {row["id"]: row for row in page["rows"]}
    return [found[run_id] for run_id in ids if run_id in found]


def expand_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with a column for each argument, metric, tag and property.

    >>> expand_row({"id": "a_1", "arguments": {"lr": 0.1}, "metrics": {"loss": 2.0}})
    {'id': 'a_1', 'arg.lr': 0.1, 'metric.loss': 2.0}
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in _GROUPS:
            found |= {f"{_GROUPS[name]}.{each}": part for each, part in value.items()}
        else:
            found[name] = value
    return found


def list_columns(rows: Sequence[Mapping[str, Any]], asked: Sequence[str]) -> list[str]:
    """The columns of expanded rows: in the order in which they were asked for, those of a group by name.

    >>> list_columns([{"id": "a", "tag.b": 1, "tag.a": 2}], ["tags", "id"])
    ['tag.a', 'tag.b', 'id']
    """
    known = sorted({name for row in rows for name in row})
    found: list[str] = []
    for name in asked:
        start = f"{_GROUPS[name]}." if name in _GROUPS else ""
        found += [each for each in known if each.startswith(start)] if start else [name]
    return list(dict.fromkeys(found))
