"""Searching runs and experiments with MLflow's filters and orders."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import INTERNAL, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.experiments import describe_experiment, read_experiment_id
from trainmaster.dispatcher.mlflow.filters import EXPERIMENTS, RUNS, Clause, SortKey, parse_filter, parse_order
from trainmaster.dispatcher.mlflow.offsets import read_offset, write_offset
from trainmaster.dispatcher.mlflow.requests import Request
from trainmaster.dispatcher.mlflow.run_messages import STATUS, RunMessages
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.mlflow_experiment_search import ExperimentQuery
from trainmaster.dispatcher.store.mlflow_experiments import DEFAULT_NAME, DEFAULT_SEQ
from trainmaster.dispatcher.store.mlflow_search import MlflowSearch, View
from trainmaster.job.errors import UserErrorException

MOST_RESULTS = 50_000
_USUAL_RUNS = 1000

_VIEWS: Mapping[Any, View] = {
    "ACTIVE_ONLY": "active",
    "DELETED_ONLY": "deleted",
    "ALL": "all",
    "1": "active",
    "2": "deleted",
    "3": "all",
}
_LARGEST_ID = 2**63 - 1
_NEWEST_FIRST = (SortKey("attribute", "creation_time", descending=True), SortKey("attribute", "experiment_id"))


class SearchEndpoints:
    """Finds runs and experiments."""

    def __init__(self, store: Store, messages: RunMessages) -> None:
        self._store = store
        self._messages = messages

    @endpoint("POST", "runs/search", changes=False)
    async def search_runs(self, request: Request) -> str:
        """A page of the runs that match a filter."""
        limit = _read_limit(request, _USUAL_RUNS)
        filter_, orders = request.text("filter"), request.texts("order_by")
        ids = tuple(read_experiment_id(each) for each in request.texts("experiment_ids"))
        view = _read_view(request, "run_view_type")
        search = MlflowSearch(
            experiments=self._find_experiments(ids),
            clauses=parse_filter(filter_, RUNS),
            order=_read_orders(orders),
            view=view,
            limit=limit,
            cursor=request.text("page_token"),
            key=repr((sorted(ids), filter_, orders, view)),
            statuses=STATUS,
        )
        return await asyncio.to_thread(self._write_runs, search)

    def _write_runs(self, search: MlflowSearch) -> str:
        try:
            seqs, following = self._store.mlflow_search.find(search)
        except UserErrorException as error:
            raise MlflowError(WRONG, f"Invalid page token. {error.cause}") from None
        parts = []
        if seqs:
            parts.append(f'"runs":[{",".join(self._messages.write(seqs, with_model_inputs=False))}]')
        if following:
            parts.append(f'"next_page_token":"{following}"')
        return "{" + ",".join(parts) + "}"

    def _find_experiments(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        found = {each for each in ids if abs(each) <= _LARGEST_ID}
        if DEFAULT_SEQ in found and self._store.mlflow_experiments.find(DEFAULT_SEQ) is None:
            # An experiment of this name was there before MLflow's.
            own = self._store.mlflow_experiments.find_by_name(DEFAULT_NAME)
            found |= {own.seq} if own is not None else set()
        return tuple(sorted(found))

    @endpoint("GET", "experiments/search")
    @endpoint("POST", "experiments/search", changes=False)
    def search_experiments(self, request: Request) -> dict[str, Any]:
        """A page of the experiments that match a filter."""
        limit = _read_limit(request, 0)
        clauses = parse_filter(request.text("filter"), EXPERIMENTS)
        for clause in clauses:
            _check_experiment_ids(clause)
        order = tuple(parse_order(each, EXPERIMENTS) for each in request.texts("order_by")) or _NEWEST_FIRST
        offset = read_offset(request.text("page_token"))
        view = _read_view(request, "view_type")
        found = self._store.mlflow_experiment_search.find(ExperimentQuery(clauses, order, view, offset, limit + 1))
        answer: dict[str, Any] = {}
        if found:
            answer["experiments"] = [describe_experiment(each, request.workspace) for each in found[:limit]]
        if len(found) > limit:
            answer["next_page_token"] = write_offset(offset + limit)
        return answer


def _read_limit(request: Request, usual: int) -> int:
    limit = request.integer("max_results", usual)
    assert limit is not None
    if limit < 1:
        raise MlflowError(
            WRONG, f"Invalid value {limit} for parameter 'max_results' supplied. It must be a positive integer"
        )
    if limit > MOST_RESULTS:
        raise MlflowError(
            WRONG, f"Invalid value {limit} for parameter 'max_results' supplied. It must be at most {MOST_RESULTS}"
        )
    return limit


def _read_view(request: Request, name: str) -> View:
    # MLflow ignores what it does not know.
    return _VIEWS.get(str(request.arguments.get(name)), "active")


def _read_orders(texts: list[str]) -> tuple[SortKey, ...]:
    keys = tuple(parse_order(text, RUNS) for text in texts)
    if len({(key.entity, key.key) for key in keys}) < len(keys):
        raise MlflowError(INTERNAL, f"`order_by` contains duplicate fields: {texts}")
    return keys


def _check_experiment_ids(clause: Clause) -> None:
    if (clause.entity, clause.key) == ("attribute", "experiment_id"):
        for value in clause.value if isinstance(clause.value, tuple) else (str(clause.value),):
            read_experiment_id(value)
