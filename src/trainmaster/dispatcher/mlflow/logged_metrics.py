"""The metrics in a request, checked as MLflow checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from trainmaster.dispatcher.mlflow.checks import LONGEST_KEY, MOST_PARAMS_OR_TAGS, check_length, check_name, invalid
from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.dispatcher.mlflow.requests import missing, read_integer, wrong_value

MOST_METRICS = 1000
MOST_ENTITIES = 1000
"""Metrics, parameters and tags of one batch."""
_END = 2**63
_RUN_ID = re.compile(r"[a-zA-Z0-9][\w\-]{0,255}")


LoggedPoint = tuple[str, float, int, int]
"""The name of a metric, a value, its step and its time."""
_POINT = itemgetter("key", "value", "step", "timestamp")


class LoggedMetric(NamedTuple):
    """One value of a metric."""

    key: str
    value: float
    step: int
    timestamp: int
    model_id: str = ""
    dataset_name: str = ""
    dataset_digest: str = ""


@dataclass(frozen=True)
class LoggedMetrics:
    """The values in one request."""

    points: Sequence[LoggedPoint]
    of_models: Sequence[LoggedMetric] = ()
    """Those that a logged model has as well."""


def read_metric(fields: Mapping[str, Any]) -> LoggedMetrics:
    """The metric that a request consists of."""
    return _collect([check_metric(_read_fields(fields, ""), "")])


def read_metrics(entries: Sequence[Mapping[str, Any]]) -> LoggedMetrics:
    """The metrics of a batch."""
    points = _read_plain(entries)
    if points is not None:
        return LoggedMetrics(points)
    paths = [f"metrics[{number}]." for number in range(len(entries))]
    return _collect([check_metric(_read_fields(each, path), path) for each, path in zip(entries, paths, strict=True)])


def _collect(metrics: Sequence[LoggedMetric]) -> LoggedMetrics:
    points = [(each.key, each.value, each.step, each.timestamp) for each in metrics]
    return LoggedMetrics(points, [each for each in metrics if each.model_id])


def _read_plain(entries: Sequence[Mapping[str, Any]]) -> list[LoggedPoint] | None:
    """The points of a batch that is as clients send it, checked all at once; None if anything about it is unusual."""
    if set(map(len, entries)) != {4}:
        return None
    try:
        points = list(map(_POINT, entries))
    except KeyError:
        return None
    keys, values, steps, times = zip(*points, strict=True)
    is_plain = (
        set(map(type, keys)) == {str}
        and set(map(type, values)) == {float}
        and set(map(type, steps)) == set(map(type, times)) == {int}
        and 0 <= min(times) <= max(times) < _END
        and -_END <= min(steps) <= max(steps) < _END
    )
    return points if is_plain and all(map(_is_name, set(keys))) else None


def _is_name(key: str) -> bool:
    try:
        check_name(key)
    except MlflowError:
        return False
    return 0 < len(key) <= LONGEST_KEY


def _read_fields(fields: Mapping[str, Any], path: str) -> LoggedMetric:
    key = fields.get("key")
    if key is None or key == "":
        raise missing(f"{path}key")
    if not isinstance(key, str):
        raise wrong_value(f"{path}key", key)
    value = _read_number(f"{path}value", fields.get("value"))
    timestamp = _read_whole(f"{path}timestamp", fields.get("timestamp"))
    step = 0 if fields.get("step") is None else _read_whole(f"{path}step", fields["step"])
    others = [_read_text(f"{path}{name}", fields.get(name)) for name in ("model_id", "dataset_name", "dataset_digest")]
    return LoggedMetric(key, value, step, timestamp, *others)


def _read_number(path: str, value: Any) -> float:
    if value is None or value == "":
        raise missing(path)
    if not isinstance(value, int | float | str):
        raise wrong_value(path, value)
    try:
        # True is 1.0, as on MLflow's server.
        return float(value)
    except (ValueError, OverflowError):
        raise wrong_value(path, value) from None


def _read_whole(path: str, value: Any) -> int:
    if value is None or value == "":
        raise missing(path)
    number = read_integer(path, value)
    if not -_END <= number < _END:
        raise wrong_value(path, value)
    return number


def _read_text(path: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_value(path, value)
    return value


def check_metric(metric: LoggedMetric, path: str) -> LoggedMetric:
    """The metric, if its name and time are allowed. `path` is where it stands in the request."""
    if bool(metric.dataset_name) != bool(metric.dataset_digest):
        raise MlflowError(WRONG, "Both dataset_name and dataset_digest must be provided if one is provided")
    check_name(metric.key, f"{path}name")
    if metric.timestamp < 0:
        reason = f"metric '{metric.key}' (value={metric.value}). "
        reason += "Timestamp must be a nonnegative long (64-bit integer) "
        raise invalid(f"{path}timestamp", metric.timestamp, reason)
    check_length("Metric name", LONGEST_KEY, metric.key)
    return metric


def check_run_id(run_id: str) -> None:
    """Refuse an id that no run of MLflow can have."""
    if not _RUN_ID.fullmatch(run_id):
        raise invalid("run_id", run_id)


def check_batch(metrics: int, params: int, tags: int) -> None:
    """Refuse a batch that is too large."""
    for name, most, count in (
        ("metrics", MOST_METRICS, metrics),
        ("params", MOST_PARAMS_OR_TAGS, params),
        ("tags", MOST_PARAMS_OR_TAGS, tags),
        ("metrics, params, and tags", MOST_ENTITIES, metrics + params + tags),
    ):
        if count > most:
            raise MlflowError(
                WRONG,
                f"A batch logging request can contain at most {most} {name}. Got {count} {name}. "
                f"Please split up {name} across multiple requests and try again.",
            )
