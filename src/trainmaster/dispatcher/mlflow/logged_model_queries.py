"""Queries for logged models: filter, order and page, as requests have them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.dispatcher.mlflow.errors import ATTRIBUTE_NOT_FOUND, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.filters import LOGGED_MODELS, parse_filter
from trainmaster.dispatcher.mlflow.requests import Request, missing, wrong_value
from trainmaster.dispatcher.mlflow.run_inputs import read_experiment_id
from trainmaster.dispatcher.store.logged_model_search import SORTABLE, DatasetFilter, ModelOrder, ModelQuery

_USUAL = 50
_USUAL_FOR_ZERO = 100
_MOST = 10_000


@dataclass(frozen=True)
class AskedPage:
    """A page of models that a client asks for."""

    query: ModelQuery
    """Asks for one model more, to know whether there are further pages."""
    limit: int
    experiment_ids: list[str]
    filter_string: str | None
    order_by: list[dict[str, Any]] | None


def read_query(request: Request) -> AskedPage:
    """What a request asks for."""
    given = request.arguments.get("experiment_ids")
    if given is None:
        raise missing("experiment_ids")
    if not isinstance(given, list):
        raise wrong_value("experiment_ids", given)
    experiment_ids = request.texts("experiment_ids")
    filter_string = request.text("filter") or None
    orders = [_normalize_order(each) for each in request.objects("order_by")] or None
    datasets = [_read_dataset(each) for each in request.objects("datasets")]
    limit = min(request.integer("max_results", _USUAL) or _USUAL_FOR_ZERO, _MOST)
    if limit < 0:
        raise wrong_value("max_results", limit)
    token = request.text("page_token")
    offset = _read_token(token, experiment_ids, filter_string, orders) if token else 0
    query = ModelQuery(
        [read_experiment_id(each) for each in experiment_ids],
        parse_filter(filter_string, LOGGED_MODELS) if filter_string else (),
        datasets,
        [_read_order(each) for each in orders or ()],
        offset,
        limit + 1,
    )
    return AskedPage(query, limit, experiment_ids, filter_string, orders)


def _read_dataset(entry: Mapping[str, Any]) -> DatasetFilter:
    name = entry.get("dataset_name")
    if not isinstance(name, str) or not name:
        raise MlflowError(WRONG, "`dataset_name` in the `datasets` clause must be specified.")
    return DatasetFilter(name, _read_text(entry, "dataset_digest"))


def _normalize_order(entry: Mapping[str, Any]) -> dict[str, Any]:
    ascending = entry.get("ascending")
    return {
        "field_name": _read_text(entry, "field_name") or "",
        "ascending": True if ascending is None else str(ascending).lower() == "true",
        "dataset_name": _read_text(entry, "dataset_name"),
        "dataset_digest": _read_text(entry, "dataset_digest"),
    }


def _read_order(entry: Mapping[str, Any]) -> ModelOrder:
    field = entry["field_name"]
    kind, dot, name = field.partition(".")
    if not dot:
        key = LOGGED_MODELS.aliases.get(field, field)
        if key not in SORTABLE:
            raise MlflowError(WRONG, f"Invalid order by field name: {field}", ATTRIBUTE_NOT_FOUND)
        return ModelOrder(key, ascending=entry["ascending"])
    if kind != "metrics":
        raise MlflowError(WRONG, f"Invalid order by field name: {field}. Only metrics are supported.")
    dataset = DatasetFilter(entry["dataset_name"], entry["dataset_digest"])
    return ModelOrder(name, True, entry["ascending"], dataset)


def _read_text(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    return value if isinstance(value, str) and value else None


# Pages


def make_token(asked: AskedPage) -> str:
    """The token for the next page."""
    content = {
        "experiment_ids": asked.experiment_ids,
        "filter_string": asked.filter_string,
        "order_by": asked.order_by,
        "offset": asked.query.offset + asked.limit,
    }
    return base64.b64encode(json.dumps(content).encode()).decode()


def _read_token(
    token: str, experiment_ids: list[str], filter_string: str | None, order_by: list[dict[str, Any]] | None
) -> int:
    """Where the page begins. Raises MlflowError for a token of another query."""
    try:
        content = json.loads(base64.b64decode(token, validate=True))
        offset = int(content["offset"])
        found = [content["experiment_ids"], content["filter_string"], content["order_by"]]
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MlflowError(WRONG, f"Invalid page token: {token[:200]}. {error}") from None
    if not 0 <= offset < 2**62:
        raise MlflowError(WRONG, f"Invalid page token: {token[:200]}")
    for text, now, then in (
        ("Experiment IDs in the page token do not match the requested experiment IDs.", experiment_ids, found[0]),
        ("Filter string in the page token does not match the requested filter string.", filter_string, found[1]),
        ("Order by in the page token does not match the requested order by.", order_by, found[2]),
    ):
        if now != then:
            raise MlflowError(WRONG, f"{text} Expected: {now}. Found: {then}")
    return offset
