"""Reading journals into the store: a batch of records is applied completely or not at all."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from trainmaster.dispatcher.store import labels, points
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.logged_models import LoggedModels, ModelMetric
from trainmaster.dispatcher.store.ordered_points import Point
from trainmaster.dispatcher.store.params import add_params
from trainmaster.dispatcher.store.points import SYSTEM
from trainmaster.dispatcher.store.runs import Runs, no_such_run
from trainmaster.dispatcher.store.schema import journals
from trainmaster.dispatcher.store.statements import PreparedChange, PreparedInsert, PreparedSelect
from trainmaster.dispatcher.store.transactions import Repository, reads, streams
from trainmaster.dispatcher.store.values import clean, encode
from trainmaster.job.helper.safe_names import LONGEST_RUN_ID, is_plain
from trainmaster.shared.records import TERMINAL, RunError, RunRecord, Status

_OFFSETS = PreparedSelect(
    select(journals.c.journal, journals.c.offset).where(journals.c.run_seq == bindparam("run_seq"))
)
_JOURNAL = PreparedSelect(
    select(journals.c.offset, journals.c.ignored, journals.c.ignored_because).where(
        journals.c.run_seq == bindparam("run_seq"), journals.c.journal == bindparam("journal")
    )
)
_INSERT = PreparedInsert(journals.insert(), ("run_seq", "journal", "offset", "ignored", "ignored_because"))
_UPDATE = PreparedChange(
    update(journals)
    .where(journals.c.run_seq == bindparam("run"), journals.c.journal == bindparam("which"))
    .values(**{name: bindparam(f"new_{name}") for name in ("offset", "ignored", "ignored_because")})
)
_LARGEST_STEP = 2**63 - 1
_MOST_RANKS = 2**31
# The name of a journal begins with the rank of its writer, unless a program outside of the job writes it.
_OF_RANK = re.compile(r"(\d{1,9})-")


class _Overtaken(Exception):
    """Meanwhile a journal was read further, or the run ended."""


class Unusable(Exception):
    """A record that cannot be applied; the text says why."""


Record = Mapping[str, Any] | Unusable
"""The content of a line of a journal, or why it cannot be used."""

Batch = tuple[str, int, int, Sequence[Record]]
"""The name of a journal, the offsets where the records begin and end, and the records."""


class Journals(Repository):
    """What runs wrote into their journals, and how far each journal has been read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = Runs(database)
        self._models = LoggedModels(database)

    @reads
    def get_offsets(self, connection: Connection, run_id: str) -> dict[str, int]:
        """How far each journal of the run has been read, by the journal's name."""
        return dict(_OFFSETS.rows(connection, run_seq=self._runs.get_seq(run_id)))

    @streams
    def ingest(
        self, connection: Connection, run_id: str, journal: str, start: int, end: int, records: Sequence[Record]
    ) -> bool:
        """Apply the records that lie from `start` to `end` in a journal of the run, all or none.

        False, with nothing changed, unless the journal has been read exactly up to `start`. A record that cannot
        be applied is skipped and counted in the run's warnings. A power cut may undo this together with the
        offset; then the records are applied again.
        """
        run = self._runs.get(run_id)
        if run is None:
            raise no_such_run(run_id)
        return self._apply(connection, run, journal, start, end, records)

    def finish_run(
        self,
        run_id: str,
        to: Status,
        *,
        at: float,
        batches: Sequence[Batch] = (),
        warnings: Sequence[str] = (),
        **changes: Any,
    ) -> RunRecord | None:
        """End a run in one step: apply what its journals still contain, add warnings, set its terminal state.

        None, with nothing changed, if a journal was read further meanwhile or the run has ended already. A power
        cut may undo it; then the run has to be finished again.
        """
        try:
            with self._database.write_lazily() as connection:
                run = self._runs.get(run_id)
                if run is None or not all(self._apply(connection, run, *batch) for batch in batches):
                    raise _Overtaken
                if warnings:
                    self._runs.add_warnings(run_id, *warnings)
                ended = self._runs.move(run_id, to, at=at, **changes)
                if ended is None:
                    raise _Overtaken
                return ended
        except _Overtaken:
            return None

    def _apply(
        self, connection: Connection, run: RunRecord, journal: str, start: int, end: int, records: Sequence[Record]
    ) -> bool:
        row = _JOURNAL.row(connection, run_seq=run.seq, journal=journal)
        offset, ignored, because = row or (0, 0, "")
        if offset != start:
            return False
        batch = _Batch(connection, self._runs, self._models, run, rank_of(journal))
        for record in records:
            batch.apply(record)
        batch.finish()
        if batch.ignored:
            ignored, because = ignored + batch.ignored, because or batch.because
            about = f"Journal {journal!r}: "
            plural = "1 record was" if ignored == 1 else f"{ignored} records were"
            self._runs.add_warnings(run.id, f"{about}{plural} passed over; the first: {because}", instead_of=about)
        if row is None:
            _INSERT.run(connection, [(run.seq, journal, end, ignored, because)])
        else:
            _UPDATE.run(
                connection,
                run=run.seq,
                which=journal,
                new_offset=end,
                new_ignored=ignored,
                new_ignored_because=because,
            )
        return True


def rank_of(journal: str) -> int | None:
    """The rank of the process that writes the journal of this name.

    >>> rank_of("3-4711-0a1b2c3d.jsonl"), rank_of("client-4711-0a1b2c3d.jsonl")
    (3, None)
    """
    found = _OF_RANK.match(journal)
    return int(found[1]) if found else None


class _Batch:
    """One batch of a journal while it is applied."""

    def __init__(
        self, connection: Connection, runs: Runs, models: LoggedModels, run: RunRecord, rank: int | None
    ) -> None:
        self.ignored = 0
        self.because = ""
        self._connection = connection
        self._runs = runs
        self._models = models
        self._run = run
        self._rank = rank
        # The runs that records may change: the journal's own and its descendants; None for other runs.
        self._known: dict[str, RunRecord | None] = {run.id: run}
        self._metrics: dict[str, tuple[int, dict[str, points.Batch]]] = {}
        self._handlers: dict[Any, Callable[[RunRecord, Mapping[str, Any]], None]] = {
            "metric": self._scalar,
            "points": self._keep_points,
            "use": self._keep_use,
            "list": self._list,
            "row": self._row,
            "table": self._table,
            "image": self._file,
            "json": self._file,
            "tags": self._tags,
            "untag": self._untag,
            "properties": self._properties,
            "params": self._params,
            "model": self._model_value,
            "set": self._texts,
            "child": self._child,
            "state": self._state,
        }

    def apply(self, record: Record) -> None:
        """Apply one record, or count it as skipped."""
        try:
            if isinstance(record, Unusable):
                raise record
            if not isinstance(record, Mapping):
                raise Unusable("it is not an object")
            kind = record.get("k")
            handler = self._handlers.get(kind) if isinstance(kind, str) else None
            if handler is None:
                raise Unusable(f"its kind {kind!r} is unknown")
            about = record.get("r")
            handler(self._run if about is None else self._descendant(about), record)
        except Unusable as reason:
            self._pass_over(str(reason))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            # A number of thousands of digits, a list nested a thousand deep.
            self._pass_over(f"its value cannot be kept: {error}")

    def _pass_over(self, reason: str) -> None:
        self.ignored += 1
        self.because = self.because or clean(reason)[:300]

    def finish(self) -> None:
        """Write the collected metrics."""
        for run_id, (run_seq, batches) in self._metrics.items():
            mixed = points.append(self._connection, run_seq, batches, self._rank)
            texts = [
                f"Metric {name!r} was logged as different kinds of metric; it stays what it was first" for name in mixed
            ]
            if texts:
                self._runs.add_warnings(run_id, *texts)

    def _scalar(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        self._append(run, record, "scalar", [_value_of(record)])

    def _keep_points(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        """What a client of MLflow logged at once: all of it, or nothing."""
        logged = [_read_logged(each) for each in _list_of(record, "v")]
        _, metrics = self._metrics.setdefault(run.id, (run.seq, {}))
        for name, point in logged:
            batch = metrics.get(name)
            if batch is None:
                batch = metrics[name] = points.Batch("scalar", kinds={"scalar"}, is_ordered=True)
            batch.points.append(point)

    def _keep_use(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        """What the ranks and a node used at one moment, as the agent measured it: all of it, or nothing."""
        time = _time_of(record)
        measured = [(clean(f"{SYSTEM}/{name}"), _read_by_rank(values)) for name, values in _mapping_of(record).items()]
        _, metrics = self._metrics.setdefault(run.id, (run.seq, {}))
        for name, by_rank in measured:
            batch = metrics.get(name)
            if batch is None:
                batch = metrics[name] = points.Batch(SYSTEM, kinds={SYSTEM})
            batch.points.extend([(encode(value), None, time) for _, value in by_rank])
            batch.ranks.extend([rank for rank, _ in by_rank])

    def _list(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        self._append(run, record, "scalar", _list_of(record, "v"))

    def _row(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        self._append(run, record, "row", [_mapping_of(record)])

    def _table(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        columns = {name: _list_of({"v": cells}, "v") for name, cells in _mapping_of(record).items()}
        height = max(map(len, columns.values()), default=0)
        rows = [{name: cells[n] for name, cells in columns.items() if n < len(cells)} for n in range(height)]
        self._append(run, record, "row", rows)

    def _file(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        self._append(run, record, str(record["k"]), [_text_of(record, "v")])

    def _append(self, run: RunRecord, record: Mapping[str, Any], kind: str, values: Sequence[Any]) -> None:
        name, step, time = clean(_text_of(record, "n")), _step_of(record), _time_of(record)
        encoded = [encode(value) for value in values]
        _, metrics = self._metrics.setdefault(run.id, (run.seq, {}))
        batch = metrics.get(name)
        if batch is None:
            batch = metrics[name] = points.Batch(kind)
        batch.kinds.add(kind)
        batch.points.extend([(value, step, time) for value in encoded])

    def _tags(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        labels.set_tags(self._connection, run.seq, _mapping_of(record))

    def _untag(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        labels.remove_tags(self._connection, run.seq, [str(name) for name in _list_of(record, "v")])

    def _properties(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        for name in labels.add_properties(self._connection, run.seq, _mapping_of(record)):
            text = f"Property {name!r} has a value already and keeps it: properties are written once"
            self._runs.add_warnings(run.id, text)

    def _params(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        texts = {str(name): str(value) for name, value in _mapping_of(record).items()}
        for name, _, _ in add_params(self._connection, run.seq, texts):
            text = f"Parameter {name!r} has a value already and keeps it: parameters are written once"
            self._runs.add_warnings(run.id, text)

    def _model_value(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        """A value of a logged model; the run has it as well, by another record."""
        value = encode(_value_of(record))[0]
        metric = ModelMetric(
            _text_of(record, "n"),
            math.nan if value is None else value,
            int(_time_of(record) * 1000),
            _step_of(record) or 0,
            run.id,
            *(record[name] if isinstance(record.get(name), str) else None for name in ("dataset", "digest")),
        )
        refused = self._models.add_metrics(run.seq, [(_text_of(record, "m"), metric)])
        if refused is not None:
            raise Unusable(refused)

    def _texts(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        texts = _mapping_of(record)
        changes = {name: texts[name] for name in ("display_name", "description") if isinstance(texts.get(name), str)}
        if len(changes) != len(texts):
            raise Unusable("only display_name and description can be set, to texts")
        self._runs.update(run.id, **changes)

    def _child(self, parent: RunRecord, record: Mapping[str, Any]) -> None:
        child_id, at = _text_of(record, "id"), _time_of(record)
        if not is_plain(child_id, LONGEST_RUN_ID):
            # The id becomes the name of a folder.
            raise Unusable(f"{child_id[:100]!r} cannot be a run id")
        if self._runs.get(child_id) is not None:
            self._descendant(child_id)
            return
        name = record.get("name")
        child = RunRecord(
            id=child_id,
            experiment=parent.experiment,
            status=Status.RUNNING,
            created_at=at,
            started_at=at,
            type=parent.type,
            parent_id=parent.id,
            display_name=name if isinstance(name, str) else "",
            target=parent.target,
            submitted_by=parent.submitted_by,
        )
        self._known[child_id] = self._runs.add(child)

    def _state(self, run: RunRecord, record: Mapping[str, Any]) -> None:
        status = next((status for status in TERMINAL if status == record.get("v")), None)
        if status is None:
            raise Unusable(f"{record.get('v')!r} is not a state that a run ends in")
        if run.spec:
            # `run.complete()` has no effect in a job: the run ends with its processes.
            if status is not Status.COMPLETED:
                raise Unusable("the run of a job ends with its processes")
            return
        changes: dict[str, Any] = {"error": _error_of(record)} if record.get("error") else {}
        self._runs.move(run.id, status, at=_time_of(record), **changes)

    def _descendant(self, run_id: Any) -> RunRecord:
        """The run, if it is a descendant of the journal's own: a journal must not change other runs."""
        if not isinstance(run_id, str):
            raise Unusable("the run that it is about is not named by a text")
        if run_id not in self._known:
            self._known[run_id] = self._find_descendant(run_id)
        found = self._known[run_id]
        if found is None:
            raise Unusable(f"it is about {run_id!r}, which is not a child of this run")
        return found

    def _find_descendant(self, run_id: str) -> RunRecord | None:
        found = ancestor = self._runs.get(run_id)
        seen = set()
        while ancestor is not None and ancestor.parent_id is not None and ancestor.id not in seen:
            if ancestor.parent_id == self._run.id:
                return found
            seen.add(ancestor.id)
            ancestor = self._runs.get(ancestor.parent_id)
        return None


def _text_of(record: Mapping[str, Any], key: str) -> str:
    text = record.get(key)
    if not isinstance(text, str) or not text:
        raise Unusable(f"its {key!r} is not a text")
    return text


def _value_of(record: Mapping[str, Any]) -> Any:
    if "v" not in record:
        raise Unusable("it has no 'v'")
    return record["v"]


def _list_of(record: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = record.get(key)
    if not isinstance(found, (list, tuple)):
        raise Unusable(f"its {key!r} is not a list")
    return found


def _mapping_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    found = record.get("v")
    if not isinstance(found, Mapping):
        raise Unusable("its 'v' is not an object")
    return found


def _time_of(record: Mapping[str, Any]) -> float:
    time = record.get("t")
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not math.isfinite(time):
        raise Unusable("its 't' is not a time")
    return float(time)


def _step_of(record: Mapping[str, Any]) -> int | None:
    step = record.get("s")
    if isinstance(step, float) and step.is_integer():
        step = int(step)
    if isinstance(step, bool) or not isinstance(step, int) or abs(step) > _LARGEST_STEP:
        return None
    return step


def _read_logged(each: Any) -> tuple[str, Point]:
    """The name of a metric and a point of it. A script may have written them, too."""
    try:
        name, value, step, milliseconds = each
        is_right = type(name) is str and name and type(step) is int and type(milliseconds) is int
        if is_right and -_LARGEST_STEP <= step + 1 <= _LARGEST_STEP + 1 and 0 <= milliseconds <= _LARGEST_STEP:
            return clean(name), (encode(float(value)), step, milliseconds / 1000)
    except (TypeError, ValueError):
        pass
    raise Unusable("its 'v' has something that is not a point")


def _read_by_rank(values: Any) -> list[tuple[int, float]]:
    """The value of each rank, from an object with ranks as its keys."""
    if not isinstance(values, Mapping):
        raise Unusable("its 'v' has something that is not an object")
    found = [(int(rank), float(value)) for rank, value in values.items()]
    if not all(0 <= rank < _MOST_RANKS for rank, _ in found):
        raise Unusable("its 'v' has something that is not a rank")
    return found


def _error_of(record: Mapping[str, Any]) -> RunError:
    error = record["error"]
    if not isinstance(error, Mapping):
        return RunError("UserError", clean(str(error)))
    details = error.get("details")
    return RunError(
        clean(str(error.get("code") or "UserError")),
        clean(str(error.get("message") or "")),
        dict(details) if isinstance(details, Mapping) else {},
    )
