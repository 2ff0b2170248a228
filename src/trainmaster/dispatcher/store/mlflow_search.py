"""Searching runs as MLflow's clients do: their conditions and orders over our tables, found by `run_pages`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Select,
    String,
    Table,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import JSON

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.clauses import compare_milliseconds, compare_number, compare_text
from trainmaster.dispatcher.store.cursors import dump_cursor, load_cursor
from trainmaster.dispatcher.store.labels import TAG
from trainmaster.dispatcher.store.mlflow_runs import END_MS
from trainmaster.dispatcher.store.run_pages import Predicate, Query, Segment, SortColumn, find_runs, link_to_run
from trainmaster.dispatcher.store.schema import (
    arguments,
    experiments,
    input_datasets,
    metrics,
    run_inputs,
    run_labels,
    runs,
)
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import FLOAT, clean, label_index, name_index
from trainmaster.shared.filters.clauses import Clause, SortKey
from trainmaster.shared.records import ACTIVE, Status

View = Literal["active", "deleted", "all"]

_MOST_DRIVERS = 8
_LONG_ARGUMENT = 200
"""Texts in `arguments` that may have been shortened have this length."""
_LONG_LABEL = 165
"""The length of what stands for a long text in `run_labels`."""


@dataclass(frozen=True)
class MlflowSearch:
    """Which runs to find, and in which order."""

    experiments: tuple[int, ...]
    """The numbers of the experiments."""
    clauses: tuple[Clause, ...] = ()
    order: tuple[SortKey, ...] = ()
    """Then newest first, then by id."""
    view: View = "active"
    limit: int = 1000
    cursor: str = ""
    key: str = ""
    """A text that is the same for all pages of a search."""
    statuses: Mapping[Status, str] | None = None
    """MLflow's names of states, if the search is about them."""


class MlflowRunSearch(Repository):
    """Finds runs for MLflow's clients."""

    @reads
    def find(self, connection: Connection, search: MlflowSearch) -> tuple[list[int], str]:
        """The numbers of the runs on a page, and the cursor of the next page if there is one."""
        cursor = load_cursor(search.cursor, search.key)
        if not search.experiments:
            return [], ""
        compiler = _Compiler(connection.dialect, search)
        query = Query(
            and_(compiler.restriction, *map(compiler.compile, search.clauses)),
            compiler.restriction,
            bool(search.clauses),
            list(compiler.list_drivers())[:_MOST_DRIVERS],
            search.limit,
        )
        found = find_runs(connection, query, compiler.make_segments(), search.limit + 1, cursor)
        page = found[: search.limit]
        following = dump_cursor(page[-1].cursor, search.key) if len(found) > search.limit else ""
        return [each.seq for each in page], following


class _Compiler:
    """Turns one search into SQL."""

    def __init__(self, dialect: Dialect, search: MlflowSearch) -> None:
        self._dialect = dialect
        self._search = search
        # One experiment has an index in the usual order. Else SQLite must not sort all runs of the experiments.
        is_indexed = not search.order and len(search.experiments) == 1
        self.restriction = and_(self._test_experiment(hides=not is_indexed), self._test_view())
        self._has_index = is_indexed

    @property
    def _is_postgresql(self) -> bool:
        return self._dialect.name == "postgresql"

    # Which runs

    def _test_experiment(self, hides: bool) -> Predicate:
        column: ColumnElement[Any] = runs.c.experiment_seq
        if hides and not self._is_postgresql:
            column = literal_column("+runs.experiment_seq")
        wanted = self._search.experiments
        return column == wanted[0] if len(wanted) == 1 else column.in_(wanted)

    def _test_view(self) -> Predicate:
        match self._search.view:
            case "active":
                return runs.c.archived_at.is_(None)
            case "deleted":
                return runs.c.archived_at.is_not(None)
            case _:
                return true()

    def list_drivers(self) -> Iterator[Select[Any]]:
        """Rows of indexes that have all runs which are searched."""
        for clause in self._search.clauses:
            driver = self._find_driver(clause)
            if driver is not None:
                yield driver
        if self._search.view == "deleted":
            yield select(runs.c.seq).where(runs.c.archived_at.is_not(None))
        if not self._has_index:
            yield select(runs.c.seq).where(self._test_experiment(hides=False))

    def compile(self, clause: Clause) -> Predicate:
        """The clause as a predicate on `runs`."""
        if clause.entity == "attribute":
            return self._compile_attribute(clause)
        rows = self._select_rows(clause)
        if clause.comparator == "IS NULL":
            return ~self._has(rows)
        return self._has(rows if clause.comparator == "IS NOT NULL" else rows.where(self._test_row(clause)))

    def _has(self, rows: Select[Any]) -> Predicate:
        if self._is_postgresql:
            # PostgreSQL joins what EXISTS selects with all runs. OFFSET has it look at the runs of the page only.
            rows = rows.offset(literal_column("0"))
        return exists(rows.where(rows.selected_columns[0] == runs.c.seq).correlate(runs))

    def _find_driver(self, clause: Clause) -> Select[Any] | None:
        if clause.comparator in ("!=", "NOT IN", "LIKE", "ILIKE", "IS NULL", "IS NOT NULL"):
            return None
        match clause.entity:
            case "attribute":
                return self._drive_attribute(clause)
            case "parameter":
                return self._select_rows(clause).where(arguments.c.text == shorten(str(clause.value)))
            case "dataset":
                # A run may have several datasets with the same name.
                return self._select_rows(clause).where(self._test_row(clause)).distinct()
            case _:
                return self._select_rows(clause).where(self._test_row(clause))

    # Metrics, parameters, tags and datasets

    def _select_rows(self, clause: Clause) -> Select[Any]:
        match clause.entity:
            case "metric":
                return select(metrics.c.run_seq).where(_is_metric(clause.key))
            case "parameter":
                return select(arguments.c.run_seq).where(_is_argument(clause.key))
            case "tag":
                return select(run_labels.c.run_seq).where(_is_tag(clause.key))
            case _:
                rows = select(run_inputs.c.run_seq)
                return rows if clause.key == "context" else rows.join(input_datasets)

    def _test_row(self, clause: Clause) -> Predicate:
        match clause.entity:
            case "metric":
                return _test_metric(clause)
            case "parameter":
                return self._test_argument(clause)
            case "tag":
                return self._test_tag(clause)
            case _:
                column = run_inputs.c.context if clause.key == "context" else input_datasets.c[clause.key]
                return compare_text(column, clause, self._dialect)

    def _test_argument(self, clause: Clause) -> Predicate:
        text = arguments.c.text
        whole = self._read_whole(runs.c.params, clause.key, text)
        is_short = func.length(text) < _LONG_ARGUMENT
        exact = compare_text(text, clause, self._dialect)
        return case((is_short, exact), else_=compare_text(whole, clause, self._dialect))

    def _test_tag(self, clause: Clause) -> Predicate:
        value = run_labels.c.value
        match clause.comparator:
            case "=":
                return value == label_index(clean(str(clause.value)))
            case "!=":
                return value != label_index(clean(str(clause.value)))
        whole = self._read_whole(runs.c.tags, clause.key, value)
        is_short = func.length(value) != _LONG_LABEL
        return case(
            (is_short, compare_text(value, clause, self._dialect)), else_=compare_text(whole, clause, self._dialect)
        )

    def _read_whole(self, column: ColumnElement[Any], key: str, shortened: ColumnElement[Any]) -> ColumnElement[Any]:
        """What the row of the run has for a key; `shortened` if it has nothing."""
        given = func.nullif(column, "")
        if self._is_postgresql:
            whole: ColumnElement[Any] = cast(given, JSON)[clean(key)].astext
        else:
            members = func.json_each(given).table_valued("key", "value")
            whole = select(cast(members.c.value, String)).where(members.c.key == clean(key)).scalar_subquery()
        return func.coalesce(whole, shortened)

    # Attributes

    def _compile_attribute(self, clause: Clause) -> Predicate:
        match clause.key:
            case "status":
                return runs.c.status.in_(self._find_statuses(clause))
            case "start_time":
                column = literal_column("+runs.created_at") if not self._has_index else runs.c.created_at
                return compare_milliseconds(column, clause)
            case "end_time":
                return compare_number(_END_MS, clause)
            case key:
                return compare_text(self._find_text(key), clause, self._dialect)

    def _find_text(self, key: str) -> ColumnElement[Any]:
        match key:
            case "run_id":
                return runs.c.id
            case "user_id":
                return runs.c.submitted_by
            case "run_name":
                return case((runs.c.display_name == "", runs.c.id), else_=runs.c.display_name)
            case _:
                own = literal("mlflow-artifacts:/") + cast(experiments.c.seq, String)
                place = func.coalesce(func.nullif(experiments.c.artifact_location, ""), own)
                mine = select(place).where(experiments.c.seq == runs.c.experiment_seq).correlate(runs)
                return mine.scalar_subquery() + "/" + runs.c.id + "/artifacts"

    def _find_statuses(self, clause: Clause) -> list[str]:
        """Our states for which a clause about MLflow's is true."""
        names = self._search.statuses or {}
        return [str(status) for status, name in names.items() if _test_text(name, clause)]

    def _drive_attribute(self, clause: Clause) -> Select[Any] | None:
        rows = select(runs.c.seq)
        match clause.key:
            case "run_id" | "user_id":
                return rows.where(compare_text(self._find_text(clause.key), clause, self._dialect))
            case "start_time":
                return None if self._has_index else rows.where(compare_milliseconds(runs.c.created_at, clause))
            case "status":
                wanted = self._find_statuses(clause)
                is_active = set(wanted) <= set(map(str, ACTIVE))
                mine = runs.c.status.in_(wanted)
                if is_active:
                    return rows.where(runs.c.ended_at.is_(None), mine)
                return (
                    rows.where(runs.c.ended_at.is_not(None), mine) if not set(wanted) & set(map(str, ACTIVE)) else None
                )
            case _:
                return None

    # Orders

    def make_segments(self) -> list[Segment]:
        """The runs in parts that are each sorted by the same columns."""
        ties = [SortColumn(runs.c.id, descending=False)]
        if not any((key.entity, key.key) == ("attribute", "start_time") for key in self._search.order):
            ties.insert(0, SortColumn(runs.c.created_at, descending=True))
        if not self._search.order:
            return [Segment(tuple(ties), true())]
        first, *others = self._search.order
        rest = (*(column for key in others for column in self._make_columns(key)), *ties)
        if first.entity == "attribute":
            return self._sort_by_attribute(first, rest)
        return self._sort_by_table(first, rest)

    def _sort_by_attribute(self, key: SortKey, rest: tuple[SortColumn, ...]) -> list[Segment]:
        value = self._find_value(key)
        keys = (SortColumn(value, key.descending), *rest)
        if key.key == "run_id":
            return [Segment(keys[:1], true())]
        if key.key != "end_time":
            return [Segment(keys, true())]
        return [Segment(keys, value.is_not(None)), Segment(rest, value.is_(None))]

    def _sort_by_table(self, key: SortKey, rest: tuple[SortColumn, ...]) -> list[Segment]:
        table, is_meant, value = self._find_column(key)
        keys = (SortColumn(value, key.descending), *rest)
        has_value = and_(is_meant, value.is_not(None))
        found = [Segment(keys, has_value, table, table.c.run_seq)]
        if key.entity == "metric":
            is_nan = and_(is_meant, _IS_NAN)
            found.append(Segment(rest, is_nan, table, table.c.run_seq))
            has_value = or_(has_value, is_nan)
        mine = select(table.c.run_seq).where(has_value, link_to_run(table)).correlate(runs)
        return [*found, Segment(rest, ~exists(mine))]

    def _make_columns(self, key: SortKey) -> list[SortColumn]:
        """The columns of a key that is not the first: whether there is a value, and the value."""
        value = self._find_value(key)
        columns = [SortColumn(value, key.descending)]
        if key.entity == "metric":
            is_nan = exists(
                select(metrics.c.id).where(_is_metric(key.key), _IS_NAN, link_to_run(metrics)).correlate(runs)
            )
            rank: ColumnElement[Any] = case((value.is_not(None), 0), (is_nan, 1), else_=2)
        elif key.entity != "attribute" or key.key == "end_time":
            rank = case((value.is_(None), 1), else_=0)
        else:
            return columns
        return [SortColumn(rank, descending=False), *columns]

    def _find_value(self, key: SortKey) -> ColumnElement[Any]:
        """What a run is sorted by."""
        if key.entity != "attribute":
            table, is_meant, value = self._find_column(key)
            return select(value).where(is_meant, link_to_run(table)).correlate(runs).scalar_subquery()
        match key.key:
            case "start_time":
                return runs.c.created_at
            case "end_time":
                return _END_MS
            case "status":
                names = self._search.statuses or {}
                return self._exact(
                    case(*((runs.c.status == str(status), name) for status, name in names.items()), else_="")
                )
            case name:
                return self._exact(self._find_text(name))

    def _find_column(self, key: SortKey) -> tuple[Table, Predicate, ColumnElement[Any]]:
        """The table that has the values of a key, which rows of it, and their column."""
        match key.entity:
            case "metric":
                return metrics, _is_metric(key.key), metrics.c.last_number
            case "parameter":
                return arguments, _is_argument(key.key), arguments.c.text
            case _:
                return run_labels, _is_tag(key.key), self._exact(run_labels.c.value)

    def _exact(self, value: ColumnElement[Any]) -> ColumnElement[Any]:
        return value.collate("C") if self._is_postgresql else value


_IS_NAN = and_(metrics.c.last_number.is_(None), metrics.c.last_form == FLOAT)
_END_MS = func.round(END_MS)


def _is_metric(name: str) -> Predicate:
    return metrics.c.name == name_index(clean(name))


def _is_argument(name: str) -> Predicate:
    return arguments.c.name == shorten(name)


def _is_tag(name: str) -> Predicate:
    return and_(run_labels.c.kind == TAG, run_labels.c.name == name_index(clean(name)))


def _test_metric(clause: Clause) -> Predicate:
    compared = compare_number(metrics.c.last_number, clause)
    # NaN is different from every number, and compares with none.
    return or_(compared, _IS_NAN) if clause.comparator == "!=" else and_(metrics.c.last_number.is_not(None), compared)


def _test_text(text: str, clause: Clause) -> bool:
    """The clause on a text that is known."""
    value = clause.value
    if not isinstance(value, str):
        return False
    tests: Mapping[str, Callable[[], bool]] = {
        "=": lambda: text == value,
        "!=": lambda: text != value,
        "LIKE": lambda: is_like(text, value),
        "ILIKE": lambda: is_like(text.lower(), value.lower()),
    }
    return tests[clause.comparator]()


def is_like(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern of LIKE, in which % is any text and _ any character.

    >>> is_like("RUNNING", "RUN%_"), is_like("RUNNING", "run%")
    (True, False)
    """
    # The first row of what `pattern[:n]` matches in `text[:m]`, then one row for each character of the pattern.
    matches = [True, *([False] * len(text))]
    for mark in pattern:
        if mark == "%":
            reached = False
            row = []
            for each in matches:
                reached = reached or each
                row.append(reached)
        else:
            row = [False, *(matches[place] and mark in ("_", text[place]) for place in range(len(text)))]
        matches = row
    return matches[-1]
