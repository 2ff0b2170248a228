"""Scores a model in MLflow's format with its flavour `python_function`.

Requests have one of MLflow's own forms (`dataframe_split`, `dataframe_records`, `instances`, `inputs`), with or without
`params`, or v1's {"data": [[...]]}. The answer is {"predictions": [...]}.
"""

from __future__ import annotations

from typing import Any, Dict, List

import no_code_tensors as tensors
import numpy
import pandas

FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs", "data")

_model: Any
_columns: List[str]


def init() -> None:
    """Load the model once."""
    global _model, _columns
    from mlflow import pyfunc

    _model = pyfunc.load_model(tensors.model_path())
    schema = _model.metadata.get_input_schema()
    named = schema is not None and schema.has_input_names()
    _columns = [str(name) for name in schema.input_names()] if named else []


def run(data: Any) -> Any:
    """Answer a request, or each of a list of requests."""
    if isinstance(data, list):
        return [_run_or_fail(each) for each in data]
    body = tensors.parse(data)
    body = {"data": body} if isinstance(body, list) else body
    given = [name for name in FORMS if isinstance(body, dict) and name in body]
    if len(given) != 1 or set(body) - {given[0], "params"}:
        raise tensors.Wrong("The body must be a JSON object with one of {}.".format(", ".join(FORMS)))
    return {"predictions": _score(_read(given[0], body[given[0]]), body.get("params"))}


def _run_or_fail(text: str) -> Any:
    try:
        return run(text)
    except tensors.Wrong as error:
        return error


def openapi() -> Dict[str, Any]:
    """The schemas of requests and answers for /swagger.json."""
    row: Dict[str, Any] = {"type": "array", "items": {}}
    if _columns:
        row.update(minItems=len(_columns), maxItems=len(_columns))
        named = {"type": "object", "properties": {name: {} for name in _columns}}
        row = {"oneOf": [row, named]}
    rows = {"type": "array", "items": row, "minItems": 1}
    asked = {"type": "object", "properties": {"data": rows, "params": {"type": "object"}}, "required": ["data"]}
    answer = {"type": "object", "properties": {"predictions": {}}, "required": ["predictions"]}
    return {"input": asked, "output": answer}


def _read(form: str, value: Any) -> Any:
    """The input of the model."""
    try:
        if form == "dataframe_split":
            return pandas.DataFrame(value["data"], columns=value.get("columns"), index=value.get("index"))
        if form == "dataframe_records":
            return pandas.DataFrame(value)
        if form == "inputs" and isinstance(value, dict):
            return {name: numpy.asarray(each) for name, each in value.items()}
        return _read_rows(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise tensors.Wrong("The value of {} cannot be read: {}".format(form, _shorten(error))) from None


def _read_rows(rows: Any) -> Any:
    """A table if the model has named columns or the rows are objects, else an array."""
    if not isinstance(rows, list) or not rows:
        raise ValueError("it must be a list with at least one row")
    if isinstance(rows[0], dict):
        return pandas.DataFrame(rows)
    if _columns:
        return pandas.DataFrame(rows, columns=_columns)
    return numpy.asarray(rows)


def _score(table: Any, params: Any) -> Any:
    try:
        found = _model.predict(table, params=params) if params else _model.predict(table)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("mlflow", "builtins", "sklearn", "pandas", "numpy"):
            raise
        raise tensors.Wrong("The model cannot compute with these values: {}".format(_shorten(error))) from None
    return _to_plain(found)


def _to_plain(found: Any) -> Any:
    if isinstance(found, pandas.DataFrame):
        return numpy.asarray(found).tolist() if list(found.columns) == [0] else found.to_dict(orient="records")
    if isinstance(found, dict):
        return {str(name): _to_plain(each) for name, each in found.items()}
    if isinstance(found, (pandas.Series, numpy.ndarray)):
        return numpy.asarray(found).tolist()
    if isinstance(found, numpy.generic):
        return found.item()
    if isinstance(found, (list, tuple)):
        return [_to_plain(each) for each in found]
    return found


def _shorten(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
