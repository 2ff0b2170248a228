"""Metrics: logging values, and their histories."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.dispatcher.mlflow.checks import read_params, read_tags
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import BAD_REQUEST, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.logged_metrics import (
    LoggedMetrics,
    check_batch,
    check_run_id,
    read_metric,
    read_metrics,
)
from trainmaster.dispatcher.mlflow.metric_log import MetricLog
from trainmaster.dispatcher.mlflow.metric_messages import write_points
from trainmaster.dispatcher.mlflow.offsets import read_offset, write_offset
from trainmaster.dispatcher.mlflow.requests import HINT, Request, missing, read_integer
from trainmaster.dispatcher.mlflow.runs import require_active_run
from trainmaster.dispatcher.runs.changes import Changes
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.batches import Batch, ChangedParamsError, RefusedMetricError
from trainmaster.dispatcher.store.logged_models import ModelMetric
from trainmaster.dispatcher.store.mlflow_runs import RunHead
from trainmaster.dispatcher.store.values import encode

_MOST_BULK_POINTS = 25_000
_MOST_RUNS = 100
_MOST_SAMPLES = 2500


class MetricEndpoints:
    """Logs values and reads them."""

    def __init__(self, store: Store, log: MetricLog, changes: Changes) -> None:
        self._store = store
        self._log = log
        self._changes = changes
        self._heads: dict[str, RunHead] = {}
        """Runs that are not deleted, as long as the store has the same version."""
        self._version = -1

    @endpoint("POST", "runs/log-metric", is_frequent=True)
    async def log_metric(self, request: Request) -> dict[str, Any]:
        """Log one value."""
        run_id = request.run_id()
        metrics = read_metric(request.arguments)
        head = self._require_active(run_id)
        await self._write(head, metrics, {}, {})
        return {}

    @endpoint("POST", "runs/log-batch", is_frequent=True)
    async def log_batch(self, request: Request) -> dict[str, Any]:
        """Log metrics, parameters and tags: all of them, or nothing."""
        run_id = request.require_text("run_id")
        given = [request.objects(name) for name in ("metrics", "params", "tags")]
        metrics, params, tags = read_metrics(given[0]), read_params(given[1]), read_tags(given[2])
        check_run_id(run_id)
        check_batch(*map(len, given))
        head = self._require_active(run_id)
        await self._write(head, metrics, params, tags)
        return {}

    def _require_active(self, run_id: str) -> RunHead:
        version = self._store.version
        if version != self._version:
            self._heads.clear()
            self._version = version
        head = self._heads.get(run_id)
        if head is None:
            head = self._heads[run_id] = require_active_run(self._store.mlflow_runs, run_id)
        return head

    async def _write(
        self, head: RunHead, metrics: LoggedMetrics, params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        if not (params or tags or metrics.of_models):
            if metrics.points:
                self._log.append(head.id, {"k": "points", "v": metrics.points})
            return
        # What was logged before comes first.
        await self._log.bring_in(head.id)
        batch = _make_batch(head.id, metrics, params, tags)
        try:
            await asyncio.to_thread(self._store.batches.log, head, batch)
        except ChangedParamsError as error:
            named = [{"key": key, "old_value": old, "new_value": new} for key, old, new in error.params]
            raise MlflowError(
                WRONG,
                f"Changing param values is not allowed. Params were already logged='{named}' for run ID='{head.id}'.",
            ) from None
        except RefusedMetricError as error:
            raise MlflowError(BAD_REQUEST, str(error)) from None
        if params or tags:
            self._changes.note(head.id, "labels")
        if metrics.points:
            self._changes.note(head.id, "metrics")

    @endpoint("GET", "metrics/get-history")
    async def get_history(self, request: Request) -> bytes:
        """All values of a metric, or a page of them, by time."""
        run_id = request.run_id()
        key = request.require_text("metric_key")
        most = request.integer("max_results")
        if most is not None and most <= 0:
            raise MlflowError(
                WRONG, f"Invalid value {most} for parameter 'max_results' supplied. It must be a positive integer."
            )
        return await asyncio.to_thread(self._read_history, run_id, key, read_offset(request.text("page_token")), most)

    def _read_history(self, run_id: str, key: str, offset: int, most: int | None) -> bytes:
        histories = self._store.histories
        if most is None and not offset:
            return _write_metrics(histories.convert(run_id, key, lambda block: write_points(key, block)))
        points = histories.read(run_id, key, offset, None if most is None else most + 1)
        token = ""
        if most is not None and len(points) > most:
            points = points[:most]
            token = write_offset(offset + most)
        return _write_metrics([write_points(key, points)] if points else [], token)

    @endpoint("GET", "metrics/get-history-bulk", only_for_pages=True)
    async def get_histories(self, request: Request) -> bytes:
        """One metric of many runs, by run id and then by time."""
        run_ids = request.texts("run_id")
        if not run_ids:
            raise MlflowError(WRONG, "GetMetricHistoryBulk request must specify at least one run_id.")
        if len(run_ids) > _MOST_RUNS:
            raise MlflowError(
                WRONG,
                f"GetMetricHistoryBulk request cannot specify more than {_MOST_RUNS} run_ids. "
                f"Received {len(run_ids)} run_ids.",
            )
        if not request.has("metric_key"):
            raise MlflowError(WRONG, "GetMetricHistoryBulk request must specify a metric_key.")
        most = min(request.integer("max_results", _MOST_BULK_POINTS) or 0, _MOST_BULK_POINTS)
        return await asyncio.to_thread(self._read_histories, sorted(set(run_ids)), request.text("metric_key"), most)

    def _read_histories(self, run_ids: Sequence[str], key: str, most: int) -> bytes:
        texts: list[bytes] = []
        for run_id in run_ids:
            points = self._store.histories.read(run_id, key, 0, most) if most > 0 else []
            if points:
                # Not a message of MLflow's protocol: Python's JSON, which has a word for NaN.
                texts.append(write_points(key, points, run_id, not_a_number=math.nan))
                most -= len(points)
        return _write_metrics(texts) if texts else b'{"metrics": []}'

    @endpoint("GET", "metrics/get-history-bulk-interval")
    async def sample_histories(self, request: Request) -> bytes:
        """A few values of one metric of many runs, by step."""
        run_ids = request.texts("run_ids")
        if not run_ids:
            raise missing("run_ids")
        if len(run_ids) > _MOST_RUNS:
            raise MlflowError(
                WRONG,
                f"GetMetricHistoryBulkInterval request must specify at most {_MOST_RUNS} run_ids. "
                f"Received {len(run_ids)} run_ids. {HINT}",
            )
        key = request.require_text("metric_key")
        steps = _read_steps(request.arguments)
        most = request.integer("max_results", _MOST_SAMPLES) or 0
        if not 1 <= most <= _MOST_SAMPLES:
            raise MlflowError(WRONG, f"max_results must be between 1 and {_MOST_SAMPLES}. {HINT}")
        return await asyncio.to_thread(self._sample, run_ids, key, most, steps)

    def _sample(self, run_ids: Sequence[str], key: str, most: int, steps: tuple[int, int] | None) -> bytes:
        samples = [(run_id, self._store.histories.sample(run_id, key, most, steps)) for run_id in run_ids]
        return _write_metrics([write_points(key, points, run_id) for run_id, points in samples if points])


def _write_metrics(texts: Sequence[bytes], token: str = "") -> bytes:
    """An answer with the points in `texts`."""
    if not texts:
        return b"{}"
    rest = f', "next_page_token": "{token}"' if token else ""
    return b'{"metrics": [%s]%s}' % (b",".join(texts), rest.encode())


def _make_batch(run_id: str, metrics: LoggedMetrics, params: Mapping[str, str], tags: Mapping[str, str]) -> Batch:
    return Batch(
        params,
        tags,
        [(key, (encode(value), step, timestamp / 1000)) for key, value, step, timestamp in metrics.points],
        [
            (
                each.model_id,
                ModelMetric(
                    each.key,
                    each.value,
                    each.timestamp,
                    each.step,
                    run_id,
                    each.dataset_name or None,
                    each.dataset_digest or None,
                ),
            )
            for each in metrics.of_models
        ],
    )


def _read_steps(arguments: Mapping[str, Any]) -> tuple[int, int] | None:
    start, end = arguments.get("start_step"), arguments.get("end_step")
    if start is None and end is None:
        return None
    first = None if start is None else read_integer("start_step", start)
    last = None if end is None else read_integer("end_step", end)
    if first is None or last is None:
        raise MlflowError(WRONG, "If either start step or end step are specified, both must be specified.")
    if first > last:
        raise MlflowError(
            WRONG, f"end_step must be greater than start_step. Found start_step={first} and end_step={last}."
        )
    return first, last
