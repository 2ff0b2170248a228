"""What runs have read and made, as MLflow's clients say: datasets, and logged models."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, Dialect, bindparam, insert, select

from trainmaster.dispatcher.store.schema import input_datasets, run_inputs, run_models, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, is_one_of, list_value
from trainmaster.dispatcher.store.transactions import Repository, reads, reads_once, writes
from trainmaster.dispatcher.store.values import clean, dump_collection

CONTEXT = "mlflow.data.context"
"""The tag of an input that says what the dataset was for."""
_READ, _MADE = 0, 1

_RUN = PreparedSelect(select(runs.c.seq, runs.c.experiment_seq, runs.c.archived_at).where(runs.c.id == bindparam("id")))


@dataclass(frozen=True)
class InputDataset:
    """Data that a run can read. Within an experiment, name and digest identify it."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None = None
    profile: str | None = None


@dataclass(frozen=True)
class DatasetInput:
    """A dataset that a run has read, with what was said about it."""

    dataset: InputDataset
    tags: Mapping[str, str]


@dataclass(frozen=True)
class ModelOutput:
    """A logged model that a run has made."""

    model_id: str
    step: int = 0


@dataclass(frozen=True)
class RunLinks:
    """What one run has read and made."""

    datasets: tuple[DatasetInput, ...] = ()
    models_in: tuple[str, ...] = ()
    models_out: tuple[ModelOutput, ...] = ()


@dataclass(frozen=True)
class DatasetUse:
    """A dataset of an experiment, and what runs there used it for."""

    experiment_id: str
    name: str
    digest: str
    context: str | None


@dataclass(frozen=True)
class LinkedRun:
    """A run that inputs or outputs are about."""

    seq: int
    experiment_seq: int
    is_archived: bool


class RunInputs(Repository):
    """Inputs and outputs of runs."""

    @reads_once
    def find_run(self, connection: Connection, run_id: str) -> LinkedRun | None:
        """The run with this id."""
        row = _RUN.row(connection, id=run_id)
        return LinkedRun(row[0], row[1], row[2] is not None) if row else None

    @writes
    def add(
        self, connection: Connection, run: LinkedRun, datasets: Sequence[DatasetInput], models: Iterable[str] = ()
    ) -> None:
        """Add what a run has read. What it is known to have read stays as it was said first."""
        for each in datasets:
            seq = _ensure_dataset(connection, run.experiment_seq, each.dataset)
            known = select(run_inputs.c.run_seq).where(run_inputs.c.run_seq == run.seq, run_inputs.c.dataset_seq == seq)
            if connection.execute(known).first() is None:
                tags = {clean(name): clean(value) for name, value in each.tags.items()}
                values = {"run_seq": run.seq, "dataset_seq": seq, "tags": dump_collection(tags)}
                connection.execute(insert(run_inputs).values(**values, context=tags.get(CONTEXT)))
        wanted = dict.fromkeys(map(clean, models))
        known_models = _list_models(connection, run.seq, _READ)
        rows = [_model_row(run.seq, _READ, each) for each in wanted if each not in known_models]
        if rows:
            connection.execute(insert(run_models), rows)

    @writes
    def add_outputs(self, connection: Connection, run: LinkedRun, models: Iterable[ModelOutput]) -> str | None:
        """Add the models that a run has made. If one of them is known already, none is added, and it is returned."""
        known = _list_models(connection, run.seq, _MADE)
        rows = []
        for each in models:
            model_id = clean(each.model_id)
            if model_id in known:
                return each.model_id
            known.add(model_id)
            rows.append(_model_row(run.seq, _MADE, model_id, each.step))
        if rows:
            connection.execute(insert(run_models), rows)
        return None

    @reads
    def read(self, connection: Connection, seqs: Sequence[int]) -> dict[int, RunLinks]:
        """What runs have read and made, by their `seq`. Runs without any are left out."""
        datasets: dict[int, list[DatasetInput]] = defaultdict(list)
        models: dict[tuple[int, int], list[ModelOutput]] = defaultdict(list)
        select_inputs, select_models = _prepare(connection.dialect)
        wanted = list_value(seqs, connection.dialect)
        for seq, tags, *dataset in select_inputs.rows(connection, seqs=wanted):
            datasets[seq].append(DatasetInput(InputDataset(*dataset), json.loads(tags) if tags else {}))
        for seq, direction, model_id, step in select_models.rows(connection, seqs=wanted):
            models[seq, direction].append(ModelOutput(model_id, step))
        found = {*datasets, *(seq for seq, _ in models)}
        return {
            seq: RunLinks(
                tuple(datasets.get(seq, ())),
                tuple(each.model_id for each in models.get((seq, _READ), ())),
                tuple(models.get((seq, _MADE), ())),
            )
            for seq in found
        }

    @reads
    def list_uses(self, connection: Connection, experiment_seqs: Sequence[int], most: int) -> list[DatasetUse]:
        """The datasets that runs of experiments have read, and for what."""
        dataset = (input_datasets.c.experiment_seq, input_datasets.c.name, input_datasets.c.digest)
        statement = (
            select(*dataset, run_inputs.c.context)
            .join_from(input_datasets, run_inputs, run_inputs.c.dataset_seq == input_datasets.c.seq)
            .where(input_datasets.c.experiment_seq.in_(experiment_seqs))
            .distinct()
            .order_by(*dataset, run_inputs.c.context)
            .limit(most)
        )
        rows = connection.execute(statement)
        return [DatasetUse(str(seq), name, digest, context) for seq, name, digest, context in rows]


def _ensure_dataset(connection: Connection, experiment_seq: int, dataset: InputDataset) -> int:
    name, digest = clean(dataset.name), clean(dataset.digest)
    known = select(input_datasets.c.seq).where(
        input_datasets.c.experiment_seq == experiment_seq,
        input_datasets.c.name == name,
        input_datasets.c.digest == digest,
    )
    seq = connection.execute(known).scalar()
    if seq is None:
        made = insert(input_datasets).values(
            experiment_seq=experiment_seq,
            name=name,
            digest=digest,
            source_type=clean(dataset.source_type),
            source=clean(dataset.source),
            schema=None if dataset.schema is None else clean(dataset.schema),
            profile=None if dataset.profile is None else clean(dataset.profile),
        )
        seq = connection.execute(made.returning(input_datasets.c.seq)).scalar_one()
    return int(seq)


def _list_models(connection: Connection, run_seq: int, direction: int) -> set[str]:
    statement = select(run_models.c.model_id).where(
        run_models.c.run_seq == run_seq, run_models.c.direction == direction
    )
    return set(connection.execute(statement).scalars())


def _model_row(run_seq: int, direction: int, model_id: str, step: int = 0) -> dict[str, object]:
    return {"run_seq": run_seq, "direction": direction, "model_id": model_id, "step": step}


@lru_cache(maxsize=8)
def _prepare(dialect: Dialect) -> tuple[PreparedSelect, PreparedSelect]:
    dataset = [input_datasets.c[name] for name in ("name", "digest", "source_type", "source", "schema", "profile")]
    each_input = (
        select(run_inputs.c.run_seq, run_inputs.c.tags, *dataset)
        .join_from(run_inputs, input_datasets, run_inputs.c.dataset_seq == input_datasets.c.seq)
        .where(is_one_of(run_inputs.c.run_seq, "seqs", dialect))
        .order_by(run_inputs.c.run_seq, run_inputs.c.dataset_seq)
    )
    order = (run_models.c.run_seq, run_models.c.direction, run_models.c.model_id)
    each_model = (
        select(*order, run_models.c.step).where(is_one_of(run_models.c.run_seq, "seqs", dialect)).order_by(*order)
    )
    return PreparedSelect(each_input), PreparedSelect(each_model)
