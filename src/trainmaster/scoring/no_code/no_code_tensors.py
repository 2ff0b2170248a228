"""Converts the text of a request to arrays, and arrays to an answer. Errors are explained in one sentence.

A request has the arrays under `inputs`, by name, or that of the only input under `data`:

    {"data": [[5.1, 3.5, 1.4, 0.2]]}        {"inputs": {"x": [[5.1, 3.5, 1.4, 0.2]]}}

The answer has an array for each output by its name.
"""

from __future__ import annotations

import json
import os
import traceback
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy

try:
    from orjson import loads as _loads
except ImportError:  # the standard library works too, but takes twice as long
    from json import loads as _loads  # type: ignore[assignment]

Arrays = Dict[str, Any]
Compute = Callable[[Arrays], Arrays]

_PLACES = ("data", "inputs")
_JSON_TYPES = {"f": "number", "i": "integer", "u": "integer", "b": "boolean", "O": "string", "U": "string"}


class Wrong(Exception):
    """The request is wrong; the text is for its sender. The server answers 400 with it."""

    bad_request = True


class Tensor:
    """An input or output: name, NumPy type, and sizes (a number, a name for a variable size, or None)."""

    def __init__(self, name: str, kind: str, shape: Optional[Sequence[Union[int, str, None]]]) -> None:
        self.name = name
        self.dtype = numpy.dtype(kind)
        self.shape = None if shape is None else tuple(shape)
        self._is_float = self.dtype.kind == "f"
        self._fixed = [(place, size) for place, size in enumerate(self.shape or ()) if isinstance(size, int)]

    def read(self, value: Any) -> Any:
        """Convert a parsed JSON value to an array."""
        array = self._array(value)
        if self.shape is not None:
            self._check_shape(array.shape)
        return array

    def read_flat(self, value: Any) -> Any:
        """Convert the elements of `value` to a flat array; the sizes are given separately."""
        return self._array(value).reshape(-1)

    def check(self, array: Any) -> None:
        """Refuse an empty array, or one of other sizes."""
        if array.size == 0:
            raise Wrong("{}: it is empty.".format(self.name))
        if self.shape is not None:
            self._check_shape(array.shape)

    def _array(self, value: Any) -> Any:
        try:
            array = numpy.asarray(value)
        except (ValueError, OverflowError):
            raise Wrong("{}: its rows have different lengths.".format(self.name)) from None
        found = array.dtype.kind
        if array.size == 0:
            raise Wrong("{}: it is empty.".format(self.name))
        if self._is_float and found in "fi":
            # The usual case.
            return array.astype(self.dtype)
        return self._rare(array, found)

    def _rare(self, array: Any, found: str) -> Any:
        wanted = self.dtype.kind
        if wanted in "OU":
            if found != "U":
                raise Wrong("{}: it must hold texts.".format(self.name))
            return array.astype(object)
        if found == "O" and wanted == "f" and _numbers_or_null(array):
            # null stands for NaN in JSON.
            return array.astype(self.dtype)
        if found not in "fiub":
            raise Wrong("{}: it must hold {}s in rows of one length.".format(self.name, _JSON_TYPES[wanted]))
        return self._convert(array)

    def _convert(self, array: Any) -> Any:
        wanted, found = self.dtype.kind, array.dtype.kind
        if wanted == "f":
            return array.astype(self.dtype)
        if wanted == "b":
            if found != "b":
                raise Wrong("{}: it must hold true and false.".format(self.name))
            return array
        limits = numpy.iinfo(self.dtype)
        if found == "b" or (found == "f" and not (array == numpy.floor(array)).all()):
            raise Wrong("{}: it must hold whole numbers.".format(self.name))
        if array.min() < limits.min or array.max() > limits.max:
            raise Wrong("{}: its numbers must be from {} to {}.".format(self.name, limits.min, limits.max))
        return array.astype(self.dtype)

    def _check_shape(self, shape: Tuple[int, ...]) -> None:
        wanted = self.shape
        assert wanted is not None
        if len(shape) != len(wanted) or any(shape[place] != size for place, size in self._fixed):
            raise Wrong(
                "{}: it must be an array of {}, and is one of {}.".format(self.name, _sizes(wanted), _sizes(shape))
            )

    def schema(self) -> Dict[str, Any]:
        """Its OpenAPI schema."""
        found: Dict[str, Any] = {"type": _JSON_TYPES[self.dtype.kind]}
        if self.dtype.kind == "f":
            # NaN is null in JSON.
            found["nullable"] = True
        if self.shape is None:
            return {"type": "array", "items": {}}
        for size in reversed(self.shape):
            found = {"type": "array", "items": found}
            if isinstance(size, int):
                found.update(minItems=size, maxItems=size)
            else:
                found["minItems"] = 1
        return found


class Model:
    """A model: its inputs, its outputs, and how to compute them."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], compute: Compute) -> None:
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._names = [each.name for each in inputs]
        self._by_name = {each.name: each for each in inputs}
        self._compute = compute
        sizes = [size for each in inputs for size in each.shape or () if isinstance(size, str)]
        self._has_common_sizes = len(set(sizes)) < len(sizes)

    @property
    def batched(self) -> bool:
        """Whether rows of several requests can be computed together and separated afterwards."""
        sizes = [each.shape[:1] for each in (*self.inputs, *self.outputs) if each.shape]
        first = sizes[0] if sizes else ()
        known = len(sizes) == len(self.inputs) + len(self.outputs)
        return known and first != () and isinstance(first[0], str) and all(size == first for size in sizes)

    def read(self, text: Union[str, bytes]) -> Arrays:
        """Read the arrays of a request."""
        given = arrays_of(parse(text), self._names)
        arrays = {name: self._by_name[name].read(value) for name, value in given.items()}
        if self._has_common_sizes:
            self._check_common(arrays)
        return arrays

    def compute(self, arrays: Arrays) -> Arrays:
        """Compute the outputs for arrays that already have the type and sizes of their inputs."""
        if self._has_common_sizes:
            self._check_common(arrays)
        return self._compute_checked(arrays)

    def _check_common(self, arrays: Arrays) -> None:
        """Check that sizes with the same name are equal."""
        known: Dict[str, Tuple[int, str]] = {}
        for each in self.inputs:
            for size, given in zip(each.shape or (), arrays[each.name].shape):
                if not isinstance(size, str):
                    continue
                other, where = known.setdefault(size, (given, each.name))
                if other != given:
                    raise Wrong("{} has {} rows, and {} has {}.".format(where, other, each.name, given))

    def answer(self, data: Union[str, bytes, List[Union[str, bytes]]]) -> Any:
        """Answer one request, or a list of requests with a list of answers, which may contain Wrong."""
        return self._answer_all(data) if isinstance(data, list) else self._compute_checked(self.read(data))

    def _answer_all(self, texts: List[Union[str, bytes]]) -> List[Any]:
        answers: List[Any] = [None] * len(texts)
        groups: Dict[Any, List[Tuple[int, Arrays]]] = {}
        for place, text in enumerate(texts):
            try:
                arrays = self.read(text)
            except Wrong as error:
                answers[place] = error
                continue
            alike = tuple(arrays[each.name].shape[1:] for each in self.inputs) if self.batched else place
            groups.setdefault(alike, []).append((place, arrays))
        for group in groups.values():
            for place, answer in self._together(group):
                answers[place] = answer
        return answers

    def _together(self, group: List[Tuple[int, Arrays]]) -> List[Tuple[int, Any]]:
        """Compute many requests together; if that fails, each separately, so that one does not fail the others."""
        if len(group) == 1:
            return [(place, self._alone(arrays)) for place, arrays in group]
        rows = [arrays[self.inputs[0].name].shape[0] for _, arrays in group]
        joined = {each.name: numpy.concatenate([arrays[each.name] for _, arrays in group]) for each in self.inputs}
        found = self._alone(joined)
        if isinstance(found, Wrong) or any(len(array) != sum(rows) for array in found.values()):
            return [(place, self._alone(arrays)) for place, arrays in group]
        ends = numpy.cumsum(rows)
        return [
            (place, {name: array[end - count : end] for name, array in found.items()})
            for (place, _), count, end in zip(group, rows, ends)
        ]

    def _alone(self, arrays: Arrays) -> Any:
        try:
            return self._compute_checked(arrays)
        except Wrong as error:
            return error

    def _compute_checked(self, arrays: Arrays) -> Arrays:
        try:
            return self._compute(arrays)
        except Wrong:
            raise
        except Exception:  # noqa: BLE001 - whatever a framework raises
            # Types and shapes were right, so the values are wrong. The log has the framework's error.
            traceback.print_exc()
            raise Wrong("The model cannot compute with these values.") from None

    def openapi(self) -> Dict[str, Any]:
        """The schemas of `input` and `output` for /swagger.json."""
        return {"input": self._input_schema(), "output": _object({each.name: each.schema() for each in self.outputs})}

    def _input_schema(self) -> Dict[str, Any]:
        by_name = _object({"inputs": _object({each.name: each.schema() for each in self.inputs})})
        if len(self.inputs) != 1:
            return by_name
        return {"oneOf": [_object({"data": self.inputs[0].schema()}), by_name]}


def parse(text: Union[str, bytes]) -> Any:
    """Parse the JSON of a request."""
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        raise Wrong("The body is not valid JSON.") from None


def arrays_of(body: Any, names: Sequence[str]) -> Dict[str, Any]:
    """The parsed JSON value for each input of a request."""
    if isinstance(body, list):
        body = {"data": body}
    if not isinstance(body, dict):
        raise Wrong(how_to_ask(names))
    if len(body) == 1 and len(names) == 1 and isinstance(body.get("data"), list):
        # The usual case.
        return {names[0]: body["data"]}
    if set(body) and set(body) == set(names) and not set(body) & set(_PLACES):
        body = {"inputs": body}
    places = [place for place in _PLACES if place in body]
    if len(places) != 1 or len(body) != 1:
        raise Wrong(how_to_ask(names))
    value = body[places[0]]
    if not isinstance(value, dict):
        if len(names) != 1:
            raise Wrong(how_to_ask(names))
        return {names[0]: value}
    missing, unknown = [name for name in names if name not in value], [name for name in value if name not in names]
    if missing or unknown:
        said = "lacks {}".format(", ".join(missing)) if missing else "has no {}".format(", ".join(unknown)[:200])
        raise Wrong("The inputs of this model are {}: the request {}.".format(", ".join(names), said))
    return value


def how_to_ask(names: Sequence[str]) -> str:
    """Explain the form of a request."""
    by_name = '{{"inputs": {{{}}}}}'.format(", ".join('"{}": [...]'.format(name) for name in names))
    if len(names) != 1:
        return "The body must be a JSON object {}.".format(by_name)
    return 'The body must be a JSON object {{"data": [...]}} or {}.'.format(by_name)


def read_facts() -> Dict[str, Any]:
    """Read what was known about the model when it was deployed (`no_code.json`)."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_code.json"), encoding="utf-8") as file:
        found: Dict[str, Any] = json.load(file)
    return found


def model_path() -> str:
    """The model's file or folder."""
    return os.path.join(os.environ["AZUREML_MODEL_DIR"], *read_facts()["path"].split("/"))


def tensors(plain: Sequence[Dict[str, Any]]) -> List[Tensor]:
    """Create inputs or outputs from `no_code.json`."""
    return [Tensor(each["name"], each["type"], each["shape"]) for each in plain]


def _numbers_or_null(array: Any) -> bool:
    return all(each is None or (isinstance(each, (int, float)) and abs(each) < 1e300) for each in array.reshape(-1))


def _object(properties: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _sizes(shape: Sequence[Union[int, str, None]]) -> str:
    return " x ".join("any" if size is None else str(size) for size in shape) or "one value"
