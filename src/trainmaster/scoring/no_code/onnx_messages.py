"""Requests in the form of v1's ONNX services: tensors as base64, with their sizes and their type by number.

    {"inputs": {"x": {"dims": [1, 2], "dataType": 1, "rawData": "AACAPwAAAEA="}}, "outputFilter": ["y"]}

The answer has the same form: `{"outputs": {"y": {"dims": ["1", "2"], "dataType": 1, "rawData": "..."}}}`. Numbers are
in `rawData`, little-endian, or in a list such as `floatData`; texts are in `stringData`, each as base64.
"""

from __future__ import annotations

import base64
import binascii
from functools import reduce
from operator import mul
from typing import Any, Dict, List, Optional, Tuple, Union

import no_code_tensors as tensors
import numpy

_STRING = 8
# ONNX's numbers of element types.
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", _STRING: "object", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
_NUMBERS = {numpy.dtype(name): number for number, name in _TYPES.items()}
_LISTS = ("floatData", "doubleData", "int32Data", "int64Data", "uint64Data")
_KEYS = frozenset({"dims", "dataType", "rawData", "stringData", "name", "dataLocation", *_LISTS})
# Protocol Buffers' JSON allows both spellings.
_SPELLINGS = {
    "data_type": "dataType", "raw_data": "rawData", "string_data": "stringData", "output_filter": "outputFilter",
    "float_data": "floatData", "double_data": "doubleData", "int32_data": "int32Data", "int64_data": "int64Data",
    "uint64_data": "uint64Data", "data_location": "dataLocation",
}  # fmt: skip

Text = Union[str, bytes]


def answer(model: tensors.Model, data: Union[Text, List[Text]]) -> Any:
    """Answer a request in either form, or a list of requests with a list of answers."""
    if not isinstance(data, list):
        body = message(data)
        return model.answer(data) if body is None else _answer(model, body)
    bodies = [message(text) for text in data]
    others = iter(model.answer([text for text, body in zip(data, bodies) if body is None]))
    return [next(others) if body is None else _answer_or_fault(model, body) for body in bodies]


def message(text: Text) -> Optional[Dict[str, Any]]:
    """Parse the body of a request in v1's form; None for another form."""
    # Search the text first, so that most requests are not parsed twice.
    if not any(_contains(text, mark) for mark in ('"dataType"', '"data_type"')):
        return None
    try:
        body = tensors.parse(text)
    except tensors.Wrong:
        # Reported like any other request.
        return None
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(inputs, dict) or not all(_is_tensor(each) for each in inputs.values()):
        return None
    return _respell(body)


def _contains(text: Text, mark: str) -> bool:
    return mark.encode() in text if isinstance(text, bytes) else mark in text


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and ("dataType" in value or "data_type" in value)


def _respell(given: Dict[str, Any]) -> Dict[str, Any]:
    return {_SPELLINGS.get(key, key): value for key, value in given.items()}


def _answer_or_fault(model: tensors.Model, body: Dict[str, Any]) -> Any:
    try:
        return _answer(model, body)
    except tensors.Wrong as error:
        return error


def _answer(model: tensors.Model, body: Dict[str, Any]) -> Dict[str, Any]:
    unknown = sorted(set(body) - {"inputs", "outputFilter"})
    if unknown:
        raise tensors.Wrong("Unknown part {}: a request has only inputs and outputFilter.".format(unknown[0][:100]))
    wanted = _choose_outputs(model, body.get("outputFilter"))
    given = tensors.arrays_of({"inputs": body["inputs"]}, [each.name for each in model.inputs])
    arrays = {each.name: _read(each, _respell(given[each.name])) for each in model.inputs}
    found = model.compute(arrays)
    return {"outputs": {name: _encode(found[name]) for name in wanted}}


def _choose_outputs(model: tensors.Model, given: Any) -> List[str]:
    names = [each.name for each in model.outputs]
    if not given:
        return names
    if not isinstance(given, list) or not all(name in names for name in given):
        raise tensors.Wrong("outputFilter must be a list of outputs. This model has {}.".format(", ".join(names)))
    return given


def _read(tensor: tensors.Tensor, given: Dict[str, Any]) -> Any:
    """Decode the array of one input."""
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise tensors.Wrong("{}: it has no part {}.".format(tensor.name, unknown[0][:100]))
    number = _whole(given["dataType"])
    if _TYPES.get(number) != tensor.dtype.name:
        wanted = "{} ({})".format(_NUMBERS[tensor.dtype], tensor.dtype.name)
        raise tensors.Wrong(
            "{}: its dataType must be {}, and is {!r:.40}.".format(tensor.name, wanted, given["dataType"])
        )
    values = _values(tensor, given)
    dims = _dims(tensor.name, given.get("dims", []))
    count = reduce(mul, dims, 1)
    if len(values) != count:
        said = "dims say {} elements, and there are {}".format(count, len(values))
        raise tensors.Wrong("{}: its {}.".format(tensor.name, said))
    array = values.reshape(dims)
    tensor.check(array)
    return array


def _values(tensor: tensors.Tensor, given: Dict[str, Any]) -> Any:
    if "rawData" in given and tensor.dtype != object:
        return _from_bytes(tensor, _bytes(tensor.name, given["rawData"]))
    if tensor.dtype == object:
        texts = given.get("stringData")
        if not isinstance(texts, list):
            raise tensors.Wrong("{}: texts are a list in stringData, each as base64.".format(tensor.name))
        return numpy.array([_text(tensor.name, each) for each in texts], dtype=object)
    for name in _LISTS:
        if name in given:
            # Protocol Buffers write large integers as strings.
            listed = given[name] if isinstance(given[name], list) else [given[name]]
            return tensor.read_flat([_whole(each) if isinstance(each, str) else each for each in listed])
    raise tensors.Wrong("{}: its values are missing: rawData.".format(tensor.name))


def _from_bytes(tensor: tensors.Tensor, data: bytes) -> Any:
    kind = tensor.dtype.newbyteorder("<")
    if len(data) % kind.itemsize:
        said = "rawData has {} bytes, and an element takes {}".format(len(data), kind.itemsize)
        raise tensors.Wrong("{}: its {}.".format(tensor.name, said))
    if kind.kind == "b":
        return numpy.frombuffer(data, dtype="uint8") != 0
    return numpy.frombuffer(data, dtype=kind).astype(tensor.dtype)


def _bytes(name: str, given: Any) -> bytes:
    try:
        return base64.b64decode(given, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise tensors.Wrong("{}: rawData and stringData are base64.".format(name)) from None


def _text(name: str, given: Any) -> str:
    try:
        return _bytes(name, given).decode("utf-8")
    except UnicodeDecodeError:
        raise tensors.Wrong("{}: its texts must be UTF-8.".format(name)) from None


def _dims(name: str, given: Any) -> Tuple[int, ...]:
    sizes = [_whole(each) for each in given] if isinstance(given, list) else [-1]
    if any(not 0 <= each < 2**31 for each in sizes):
        raise tensors.Wrong("{}: dims must be a list of sizes.".format(name))
    return tuple(sizes)


def _whole(given: Any) -> int:
    """An integer, which Protocol Buffers' JSON may write as a string; -1 for anything else."""
    if isinstance(given, str) and given.lstrip("-").isdigit() and len(given) < 21:
        return int(given)
    return given if type(given) is int else -1


def _encode(array: Any) -> Dict[str, Any]:
    found = numpy.asarray(array)
    if found.dtype.kind in "OU":
        texts = [base64.b64encode(str(each).encode("utf-8")).decode() for each in found.reshape(-1)]
        values: Dict[str, Any] = {"dataType": _STRING, "stringData": texts}
    else:
        raw = numpy.ascontiguousarray(found).astype(found.dtype.newbyteorder("<"), copy=False).tobytes()
        values = {"dataType": _NUMBERS[found.dtype], "rawData": base64.b64encode(raw).decode()}
    return {"dims": [str(size) for size in found.shape], **values, "dataLocation": "DEFAULT"}
