"""Scores an estimator of scikit-learn, kept with joblib or pickle.

As v1 had it, a request may name the method: {"data": [[...]], "method": "predict_proba"}. Columns that were fitted by
name may be given by name, as a list of rows or as columns.
"""

from __future__ import annotations

from typing import Any, Dict, List

import no_code_tensors as tensors
import numpy

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")

_estimator: Any
_methods: List[str]
_columns: List[str]


def init() -> None:
    """Load the estimator once."""
    global _estimator, _methods, _columns
    _estimator = _load(tensors.model_path())
    _methods = [name for name in METHODS if hasattr(_estimator, name)]
    if not _methods:
        raise TypeError("the file contains a {}, which cannot predict".format(type(_estimator).__name__))
    _columns = [str(name) for name in getattr(_estimator, "feature_names_in_", ())]


def run(data: Any) -> Any:
    """Answer a request, or each of a list of requests."""
    if isinstance(data, list):
        return [_run_or_fail(each) for each in data]
    body = tensors.parse(data)
    method = _method(body)
    return {method: _score(_table(_rows(body)), method)}


def _run_or_fail(text: str) -> Any:
    try:
        return run(text)
    except tensors.Wrong as error:
        return error


def openapi() -> Dict[str, Any]:
    """The schemas of requests and answers for /swagger.json."""
    width = getattr(_estimator, "n_features_in_", None)
    row: Dict[str, Any] = {"type": "array", "items": {} if _columns else {"type": "number"}, "minItems": 1}
    if width is not None:
        row.update(minItems=int(width), maxItems=int(width))
    if _columns:
        named = {"type": "object", "properties": {name: {} for name in _columns}, "required": _columns}
        row = {"oneOf": [row, named]}
    asked = {
        "type": "object",
        "properties": {
            "data": {"type": "array", "items": row, "minItems": 1},
            "method": {"type": "string", "enum": _methods},
        },
        "required": ["data"],
        "additionalProperties": False,
    }
    answer = {"type": "object", "properties": {name: {"type": "array", "items": {}} for name in _methods}}
    return {"input": asked, "output": answer}


def _load(path: str) -> Any:
    try:
        import joblib
    except ImportError:
        import pickle

        with open(path, "rb") as file:
            return pickle.load(file)
    return joblib.load(path)


def _method(body: Any) -> str:
    wanted = body.pop("method", _methods[0]) if isinstance(body, dict) else _methods[0]
    if not isinstance(wanted, str) or wanted not in _methods:
        raise tensors.Wrong("method must be one of {}.".format(", ".join(_methods)))
    return wanted


def _rows(body: Any) -> Any:
    """The table in the request: a list of rows, or columns by name."""
    if isinstance(body, dict) and _columns and isinstance(body.get("inputs"), dict):
        return _transpose(tensors.arrays_of(body, _columns))
    return tensors.arrays_of(body, ["data"])["data"]


def _transpose(columns: Dict[str, Any]) -> List[List[Any]]:
    if not all(isinstance(column, list) for column in columns.values()):
        raise tensors.Wrong("Each column must be a list.")
    if len({len(column) for column in columns.values()}) != 1:
        raise tensors.Wrong("The columns have different lengths.")
    return [list(row) for row in zip(*(columns[name] for name in _columns))]


def _table(rows: Any) -> Any:
    if not isinstance(rows, list) or not rows:
        raise tensors.Wrong(tensors.how_to_ask(["data"]))
    if _columns and all(isinstance(row, dict) for row in rows):
        rows = [_order_columns(row) for row in rows]
    width = getattr(_estimator, "n_features_in_", None)
    if width is not None:
        for row in rows:
            if not isinstance(row, list) or len(row) != width:
                has = "{} values".format(len(row)) if isinstance(row, list) else "no list"
                raise tensors.Wrong("Each row must have {} values, and one has {}.".format(int(width), has))
    if _columns:
        return _frame(rows)
    shape = None if width is None else ("rows", int(width))
    return tensors.Tensor("data", "float64", shape).read(rows)


def _order_columns(row: Dict[str, Any]) -> List[Any]:
    if set(row) != set(_columns):
        raise tensors.Wrong("Each row must have the columns {}.".format(", ".join(_columns)))
    return [row[name] for name in _columns]


def _frame(rows: List[Any]) -> Any:
    if any(isinstance(value, (list, dict)) for row in rows for value in row):
        raise tensors.Wrong("Each row must hold single values.")
    try:
        import pandas
    except ImportError:
        return tensors.Tensor("data", "float64", None).read(rows)
    return pandas.DataFrame(rows, columns=_columns)


def _score(table: Any, method: str) -> Any:
    try:
        found = getattr(_estimator, method)(table)
    except (ValueError, TypeError, KeyError) as error:
        # The error is about the table: scikit-learn's messages mention columns and values, never paths.
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise tensors.Wrong("The model cannot compute with these values: {}".format(said[:300])) from None
    if hasattr(found, "toarray"):
        found = found.toarray()
    return numpy.asarray(found).tolist()
