"""`trainmaster runs --where`: runs that match a filter, with the columns that are asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options
from trainmaster.sdk.display.describing import iso, style_of
from trainmaster.sdk.display.metric_values import format_value
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import duration, first_line, moment
from trainmaster.sdk.run.listing import COLUMNS as EVERYTHING
from trainmaster.sdk.run.listing import TIMES, expand_row, list_columns
from trainmaster.shared.filters import Field, fields_of, parse_field, parse_filter, parse_order

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_COLUMNS = ("id", "experiment", "status", "duration", "created")
_PAGE = 1000
_USUAL_LIMIT, _ALL = 20, 10_000_000
_GROUPS = frozenset({"arguments", "metrics", "tags", "properties"})
_FLEXIBLE = _GROUPS | {"experiment", "name", "description", "error", "waiting_for", "target"}


def show_search(workspace: Workspace, options: Options, statuses: Sequence[str], tags: Mapping[str, Any]) -> int:
    """Searches, and prints the runs that were found."""
    text = make_filter(options.where, options.experiment, statuses, tags)
    now = time.time()
    columns = _list_columns(options, text, now)
    limit = options.limit or (_ALL if options.csv else _USUAL_LIMIT)
    rows = find_rows(workspace, text, options.sort or "", columns, limit, options.all, options.archived)
    if options.csv:
        return _write_csv(rows, columns)
    listing: Listing[dict[str, Any]] = Listing(
        columns=[_make_column(name) for name in columns],
        row=lambda row: [_show(name, row[name], now) for name in columns],
        json=lambda row: {name: _as_json(name, value) for name, value in row.items()},
        empty=f"Workspace '{workspace.name}' has no such runs.",
    )
    return listing.show(rows, options)


def _list_columns(options: Options, text: str, now: float) -> list[str]:
    if options.columns:
        return _split(options.columns)
    return list(EVERYTHING) if options.csv else _choose_columns(text, options.sort or "", now)


def _write_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> int:
    import csv
    import sys

    expanded = [expand_row({name: _as_json(name, value) for name, value in row.items()}) for row in rows]
    names = list_columns(expanded, columns)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in expanded:
        writer.writerow([_as_cell(row.get(name)) for name in names])
    return exits.OK


def _as_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def make_filter(where: str | None, experiment: str | None, statuses: Sequence[str], tags: Mapping[str, Any]) -> str:
    """The filter that says what all options say.

    >>> make_filter("lr < 1 or lr > 2", "mnist", ["Failed"], {"good": None, "phase": "2"})
    '(lr < 1 or lr > 2) and experiment = "mnist" and status in (Failed) and tag."good" is set and tag."phase" = "2"'
    """
    parts = [f"({where})"] if where else []
    parts += [f"experiment = {quote(experiment)}"] if experiment else []
    parts += [f"status in ({', '.join(statuses)})"] if statuses else []
    for name, value in tags.items():
        parts.append(f"tag.{quote(name)} " + ("is set" if value is None else f"= {quote(value)}"))
    return " and ".join(parts)


def quote(text: str) -> str:
    """A text as a filter has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _split(columns: str) -> list[str]:
    return [name.strip() for name in columns.split(",") if name.strip()]


def _choose_columns(text: str, sort: str, now: float) -> list[str]:
    """The usual columns, and the fields that the filter and the order name."""
    fields = list(fields_of(parse_filter(text, now)))
    if sort:
        fields.append(parse_order(sort).field)
    return list(dict.fromkeys([*_COLUMNS, *map(_name_of, fields)]))


def _name_of(field: Field) -> str:
    """The name of a field as one would write it."""
    if field.kind == "column":
        return field.name
    name = field.name if _is_plain(field) else json.dumps(field.name, ensure_ascii=False)
    kind = "arg" if field.kind == "argument" else field.kind
    return f"{kind}.{name}" + ("" if field.part in ("", "last") else f".{field.part}")


def _is_plain(field: Field) -> bool:
    return not any(mark in field.name for mark in " ()<>=!~,\"'`\\") and not field.name.endswith((".min", ".max"))


def find_rows(
    workspace: Workspace,
    text: str,
    sort: str,
    columns: Sequence[str],
    limit: int,
    children: bool,
    archived: bool = False,
) -> list[dict[str, Any]]:
    """The columns of the first `limit` runs that match a filter."""
    rows: list[dict[str, Any]] = []
    cursor = ""
    while len(rows) < limit:
        page = workspace.connection.call(
            "runs.search",
            filter=text,
            order=sort,
            columns=list(columns),
            limit=min(_PAGE, limit - len(rows)),
            cursor=cursor,
            children=children,
            archived=archived,
        )
        rows += page["rows"]
        cursor = page["cursor"]
        if not cursor:
            break
    return rows


def _make_column(name: str) -> Column:
    if name == "id":
        return Column("RUN")
    if name == "status":
        return Column("STATUS", style=style_of)
    is_number = name in TIMES or name in ("duration", "number") or name.startswith(("metric.", "metric:"))
    return Column(name.upper() if "." not in name else name, right=is_number, flexible=name in _FLEXIBLE)


def _show(name: str, value: Any, now: float) -> str:
    if value is None:
        return ""
    known = parse_field(name).name if name in TIMES or name == "duration" else ""
    if known in TIMES:
        return moment(value, now)
    if known == "duration":
        return duration(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return first_line(value)
    if name in _GROUPS:
        return " ".join(f"{each}={format_value(part)}" for each, part in sorted(value.items()))
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def _as_json(name: str, value: Any) -> Any:
    return iso(value) if name in TIMES else value
