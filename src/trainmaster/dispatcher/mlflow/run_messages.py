"""MLflow's messages of runs, written as text: a page of a thousand runs has too many small parts for objects."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quote
from typing import Any

from trainmaster.dispatcher.mlflow.addresses import make_run_uri
from trainmaster.dispatcher.mlflow.run_inputs import describe_inputs, describe_outputs
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.mlflow_experiments import text_of_label
from trainmaster.dispatcher.store.mlflow_rows import MlflowRunRows
from trainmaster.dispatcher.store.mlflow_runs import find_end_ms
from trainmaster.shared.records import Status

STATUS: Mapping[Status, str] = {
    Status.NOT_STARTED: "SCHEDULED",
    Status.PREPARING: "SCHEDULED",
    Status.QUEUED: "SCHEDULED",
    Status.STARTING: "SCHEDULED",
    Status.RUNNING: "RUNNING",
    Status.FINALIZING: "RUNNING",
    Status.CANCEL_REQUESTED: "RUNNING",
    Status.COMPLETED: "FINISHED",
    Status.FAILED: "FAILED",
    Status.CANCELED: "KILLED",
}
"""Our states as MLflow names them."""

_STATUS_TEXTS = {str(status): text for status, text in STATUS.items()}


class RunMessages:
    """Writes runs as MLflow's server does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, seqs: Sequence[int], with_model_inputs: bool = True) -> list[str]:
        """The JSON of the runs with these numbers, in their order; those that are gone are left out.

        For more than a few runs, call it in a thread. MLflow leaves the models that runs have read out of searches.
        """
        rows = self._store.mlflow_rows.read(seqs)
        linked = self._link(seqs, with_model_inputs)
        return [_write_run(rows, seq, linked.get(seq, "")) for seq in seqs if seq in rows.runs]

    def write_info(self, seq: int) -> str:
        """The JSON of a run's info."""
        return _write_info(self._store.mlflow_rows.read([seq]).runs[seq])

    def _link(self, seqs: Sequence[int], with_model_inputs: bool) -> Mapping[int, str]:
        """Inputs and outputs of runs that have some: JSON members, each after a comma."""
        found = self._store.run_inputs.read(seqs)
        return {
            seq: f',"inputs":{json.dumps(describe_inputs(links, with_model_inputs))}'
            f',"outputs":{json.dumps(describe_outputs(links))}'
            for seq, links in found.items()
        }


def _write_run(rows: MlflowRunRows, seq: int, linked: str) -> str:
    row = rows.runs[seq]
    tags, params = row[-2:]
    parts = []
    metrics = rows.metrics.get(seq)
    if metrics:
        parts.append(f'"metrics":[{",".join([_write_metric(*metric) for metric in metrics])}]')
    logged = {**rows.arguments.get(seq, {}), **(json.loads(params) if params else {})}
    if logged:
        parts.append(f'"params":[{_write_pairs(logged.items())}]')
    if tags:
        found = json.loads(tags)
        parts.append(f'"tags":[{_write_pairs((key, text_of_label(value)) for key, value in found.items())}]')
    linked = linked or ',"inputs":{},"outputs":{}'
    return f'{{"info":{_write_info(row)},"data":{{{",".join(parts)}}}{linked}}}'


def _write_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ",".join([f'{{"key":{quote(key)},"value":{quote(value)}}}' for key, value in pairs])


def _write_metric(name: str, number: float | None, step: int | None, time: float) -> str:
    return f'{{"key":{quote(name)},"value":{write_number(number)},"timestamp":{round(time * 1000)},"step":{step or 0}}}'


def write_number(number: float | None) -> str:
    """A value as MLflow's SQL store answers it; null is NaN.

    >>> write_number(None), write_number(0.5), write_number(float("-inf"))
    ('"NaN"', '0.5', '-1.7976931348623157e+308')
    """
    if number is None or number != number:
        return '"NaN"'
    return repr(math.copysign(sys.float_info.max, number)) if math.isinf(number) else repr(number)


def _write_info(row: Sequence[Any]) -> str:
    _, run_id, experiment, location, _, status, created, ended, end_ms, archived, name, user, _, _ = row
    end = find_end_ms(ended, end_ms)
    whole = make_run_uri(str(experiment), run_id, location)
    text = quote(run_id)
    return (
        f'{{"run_uuid":{text},"experiment_id":"{experiment}","run_name":{quote(name or run_id)},'
        f'"user_id":{quote(user)},"status":"{_STATUS_TEXTS[status]}","start_time":{round(created * 1000)},'
        + (f'"end_time":{end},' if end else "")
        + f'"artifact_uri":{quote(whole)},"lifecycle_stage":"{"active" if archived is None else "deleted"}",'
        f'"run_id":{text}}}'
    )
