"""The two sides of a copy: a tracking server of MLflow, a database, a folder `mlruns`, or a workspace.

MLflow's own client turns every value into several objects, which costs more than everything else. So values are read
from the database itself, and go to servers and workspaces as the JSON that MLflow's client would send.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, ViewType
from mlflow.exceptions import RestException
from mlflow.store.tracking.file_store import FileStore
from mlflow.store.tracking.rest_store import RestStore
from mlflow.utils.rest_utils import http_request

from trainmaster.job.script.mlflow.rest import AskingStore

_API = "2.0/mlflow/"
_PAGE = 1000
_HISTORY_PAGE = 25_000
_ROWS = 5000
"""Of a database at once."""
_MOST_PARAMS, _MOST_ITEMS = 100, 1000
"""That a batch may have."""


class Point(NamedTuple):
    """One value of a metric."""

    key: str
    value: float
    timestamp: int
    step: int


@dataclass(frozen=True)
class Side:
    """A tracking server of MLflow, or a workspace."""

    address: str
    is_workspace: bool = False

    @cached_property
    def client(self) -> Any:
        return MlflowClient(tracking_uri=self.address, registry_uri=self.address)

    @cached_property
    def store(self) -> Any:
        return self.client._tracking_client.store

    @property
    def takes_json(self) -> bool:
        """Whether it is asked over the REST API."""
        return isinstance(self.store, RestStore)

    def ask(self, method: str, path: str, /, **arguments: Any) -> Any:
        """What an endpoint of the REST API answers. Raises MlflowException."""
        if isinstance(self.store, AskingStore):
            found = self.store._send(method, _API + path, arguments)
            status, body = found["status"], json.loads(found["body"])
        else:
            given = {"params": arguments} if method == "GET" else {"json": arguments}
            answer = http_request(self.store.get_host_creds(), f"/api/{_API}{path}", method, **given)
            status, body = answer.status_code, answer.json()
        if status != 200:
            raise RestException(body)
        return body

    def count_runs(self, experiment_ids: list[str]) -> int:
        """How many runs there are in these experiments, deleted ones too."""
        if hasattr(self.store, "engine"):
            return _count_rows(self.store.engine, experiment_ids)
        if isinstance(self.store, FileStore):
            return sum(1 for each in experiment_ids for _ in _list_run_folders(self.store, each))
        return sum(1 for each in experiment_ids for _ in self.list_runs(each))

    def list_runs(self, experiment_id: str) -> Iterator[Any]:
        """The runs of an experiment, deleted ones too. Parents come before their children."""
        if isinstance(self.store, FileStore):
            # A search would read the whole folder again for each page.
            infos = [self.store._get_run_info_from_dir(each) for each in _list_run_folders(self.store, experiment_id)]
            infos.sort(key=lambda each: (each.start_time or 0, each.run_id))
            return (self.client.get_run(each.run_id) for each in infos)
        return list_pages(
            self.client.search_runs,
            experiment_ids=[experiment_id],
            run_view_type=ViewType.ALL,
            order_by=["attributes.start_time ASC"],
        )

    def read_points(self, run_id: str, keys: Iterable[str]) -> Iterator[Point]:
        """The whole histories of a run."""
        if hasattr(self.store, "engine"):
            yield from _read_rows(self.store.engine, run_id)
            return
        for key in keys:
            if self.takes_json:
                yield from self._ask_for_points(run_id, key)
            else:
                for each in self.client.get_metric_history(run_id, key):
                    yield Point(key, each.value, each.timestamp, each.step)

    def _ask_for_points(self, run_id: str, key: str) -> Iterator[Point]:
        token: dict[str, str] = {}
        while True:
            page = self.ask(
                "GET", "metrics/get-history", run_id=run_id, metric_key=key, max_results=_HISTORY_PAGE, **token
            )
            for each in page.get("metrics", ()):
                # Large numbers are texts in JSON, and so are NaN and infinity.
                yield Point(key, float(each["value"]), int(each["timestamp"]), int(each.get("step", 0)))
            if not page.get("next_page_token"):
                return
            token = {"page_token": page["next_page_token"]}

    def log(self, run_id: str, params: Mapping[str, str], points: Iterator[Point]) -> int:
        """Log parameters and values, and return how many values there were."""
        count = 0
        for some, values in plan_batches(params, points):
            count += len(values)
            if self.takes_json:
                self.ask("POST", "runs/log-batch", run_id=run_id, params=some, metrics=values)
            else:
                metrics = [
                    Metric(each["key"], float(each["value"]), each["timestamp"], each["step"]) for each in values
                ]
                self.client.log_batch(run_id, metrics, [Param(each["key"], each["value"]) for each in some])
        return count


def plan_batches(
    params: Mapping[str, str], points: Iterator[Point]
) -> Iterator[tuple[list[dict[str, str]], list[dict[str, Any]]]]:
    """The parameters and values of each request, as many as MLflow takes at once."""
    rest = iter(params.items())
    while True:
        some = [{"key": key, "value": value} for key, value in islice(rest, _MOST_PARAMS)]
        values = [
            {"key": each.key, "value": _write_number(each.value), "timestamp": each.timestamp, "step": each.step}
            for each in islice(points, _MOST_ITEMS - len(some))
        ]
        if not some and not values:
            return
        yield some, values


def _write_number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_rows(engine: Any, run_id: str) -> Iterator[Point]:
    from mlflow.store.tracking.dbmodels.models import SqlMetric
    from sqlalchemy import select

    of = SqlMetric.__table__.c
    wanted = select(of.key, of.value, of.timestamp, of.step, of.is_nan).where(of.run_uuid == run_id)
    with engine.connect() as connection:
        found = connection.execution_options(yield_per=_ROWS).execute(wanted.order_by(of.key, of.timestamp, of.step))
        for key, value, timestamp, step, is_nan in found:
            yield Point(key, math.nan if is_nan else value, timestamp, step)


def _count_rows(engine: Any, experiment_ids: list[str]) -> int:
    from mlflow.store.tracking.dbmodels.models import SqlRun
    from sqlalchemy import func, select

    wanted = select(func.count()).where(SqlRun.__table__.c.experiment_id.in_([int(each) for each in experiment_ids]))
    with engine.connect() as connection:
        return int(connection.execute(wanted).scalar_one())


def _list_run_folders(store: Any, experiment_id: str) -> Iterator[str]:
    folder = store._get_experiment_path(experiment_id, ViewType.ALL)
    if folder is None:
        return
    for each in os.scandir(folder):
        if each.name not in store.RESERVED_EXPERIMENT_FOLDERS and os.path.isfile(os.path.join(each.path, "meta.yaml")):
            yield each.path


def list_pages(search: Callable[..., Any], most: int = _PAGE, **question: Any) -> Iterator[Any]:
    """All results of a search, `most` at a time."""
    token = None
    while True:
        page = search(**question, max_results=most, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
