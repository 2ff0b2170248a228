"""The metrics in a request, checked as MLflow checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trainmaster.dispatcher.mlflow.checks import LONGEST_KEY, MOST_PARAMS_OR_TAGS, check_length, check_name, invalid
from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.dispatcher.mlflow.requests import missing, read_integer, wrong_value

MOST_METRICS = 1000
MOST_ENTITIES = 1000
"""Metrics, parameters and tags of one batch."""
_END = 2**63
_RUN_ID = re.compile(r"[a-zA-Z0-9][\w\-]{0,255}")


class LoggedMetric(NamedTuple):
    """One value of a metric. Not a dataclass: a batch has a thousand."""

    key: str
    value: float
    step: int
    timestamp: int
    model_id: str = ""
    dataset_name: str = ""
    dataset_digest: str = ""


def read_metric(fields: Mapping[str, Any]) -> LoggedMetric:
    """The metric that a request consists of."""
    return check_metric(_read_fields(fields, ""), "")


def read_metrics(entries: Sequence[Mapping[str, Any]]) -> list[LoggedMetric]:
    """The metrics of a batch."""
    found: list[LoggedMetric] = []
    known: set[str] = set()
    for number, fields in enumerate(entries):
        metric = _read_plain(fields, known)
        if metric is None:
            path = f"metrics[{number}]."
            metric = check_metric(_read_fields(fields, path), path)
            known.add(metric.key)
        found.append(metric)
    return found


def _read_plain(fields: Mapping[str, Any], known: set[str]) -> LoggedMetric | None:
    """A metric that is as clients send it, and has a name that was checked before; else None."""
    try:
        key, value, timestamp, step = fields["key"], fields["value"], fields["timestamp"], fields["step"]
        is_plain = key in known and type(value) is float and type(timestamp) is int and type(step) is int
        if is_plain and 0 <= timestamp < _END and -_END <= step < _END and len(fields) == 4:
            return LoggedMetric(key, value, step, timestamp)
    except (KeyError, TypeError):
        # Something is missing, or is not what it should be.
        return None
    return None


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
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong_value(path, value)
    try:
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
