"""What an ONNX file says of itself, read with nothing but Python: inputs, outputs, opset, facts.

A file is a message of Protocol Buffers. Weights are stepped over, not read, so that a file of gigabytes takes
milliseconds, and nobody needs the package onnx to know what a model takes.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.exported import FACTS_KEY, Exported, Parity, Quantized, Tensor

# Field numbers of onnx.proto.
_MODEL_PRODUCER, _MODEL_VERSION, _MODEL_GRAPH, _MODEL_OPSET, _MODEL_FACTS = 2, 3, 7, 8, 14
_GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 5, 11, 12
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "object", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """An ONNX file without its weights."""

    opset: int
    producer: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    facts: dict[str, Any]
    """What `export` wrote into it; empty for a file from elsewhere."""


def read(path: str | os.PathLike[str]) -> Header:
    """Opens an ONNX file far enough to say what it takes and gives."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _header(data)
    except (ValueError, TypeError) as error:
        # TypeError: a field is of another kind than it should be.
        raise OnnxException(f"{os.fspath(path)} is not an ONNX file", cause=str(error)) from None
    except OSError as error:
        raise OnnxException(f"{os.fspath(path)} cannot be read: {error.strerror}") from None


def exported_of(path: str | os.PathLike[str]) -> Exported:
    """What `export` said of a file that it wrote."""
    facts = read(path).facts
    try:
        quantized = facts["quantized"]
        return Exported(
            os.fspath(path),
            facts["framework"],
            facts["framework_version"],
            facts["exporter"],
            facts["opset"],
            _tensors(facts["inputs"]),
            _tensors(facts["outputs"]),
            Parity(**{**facts["parity"], "batches": tuple(facts["parity"]["batches"])}),
            None if quantized is None else Quantized(**quantized),
            tuple(facts["notes"]),
        )
    except (KeyError, TypeError):
        raise OnnxException(f"{os.fspath(path)} was not written by trainmaster.onnx.export") from None


def _tensors(plain: list[dict[str, Any]]) -> tuple[Tensor, ...]:
    shapes = (None if each["shape"] is None else tuple(each["shape"]) for each in plain)
    return tuple(Tensor(each["name"], each["type"], shape) for each, shape in zip(plain, shapes))


def _header(data: Any) -> Header:
    opset, producer, graph = 0, "", None
    facts: dict[str, Any] = {}
    for number, value in _fields(data, 0, len(data)):
        if number == _MODEL_PRODUCER:
            producer = _text(data, value)
        elif number == _MODEL_GRAPH:
            graph = value
        elif number == _MODEL_OPSET:
            domain, version = _opset(data, value)
            opset = version if domain in ("", "ai.onnx") else opset
        elif number == _MODEL_FACTS:
            key, text = _entry(data, value)
            facts = json.loads(text) if key == FACTS_KEY else facts
    if graph is None or not opset:
        raise ValueError("there is no graph in it")
    inputs, outputs = _ends(data, graph)
    return Header(opset, producer, inputs, outputs, facts)


def _ends(data: Any, graph: tuple[int, int]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    inputs, outputs, weights = [], [], set()
    for number, value in _fields(data, *graph):
        if number == _GRAPH_INPUT:
            inputs.append(_tensor(data, value))
        elif number == _GRAPH_OUTPUT:
            outputs.append(_tensor(data, value))
        elif number == _GRAPH_INITIALIZER:
            weights.add(_name_of_weight(data, value))
    # Old files name their weights among the inputs.
    return tuple(each for each in inputs if each.name not in weights), tuple(outputs)


def _tensor(data: Any, place: tuple[int, int]) -> Tensor:
    name, kind, shape = "", "unknown", None
    for number, value in _fields(data, *place):
        if number == 1:
            name = _text(data, value)
        elif number == 2:
            for inner, tensor in _fields(data, *value):
                if inner == 1:
                    kind, shape = _type(data, tensor)
    return Tensor(name, kind, shape)


def _type(data: Any, place: tuple[int, int]) -> tuple[str, tuple[int | str | None, ...] | None]:
    kind, shape = "unknown", None
    for number, value in _fields(data, *place):
        if number == 1:
            kind = _TYPES.get(value, "unknown")
        elif number == 2:
            shape = tuple(_size(data, size) for inner, size in _fields(data, *value) if inner == 1)
    return kind, shape


def _size(data: Any, place: tuple[int, int]) -> int | str | None:
    for number, value in _fields(data, *place):
        if number == 1:
            return int(value)
        if number == 2:
            return _text(data, value) or None
    return None


def _name_of_weight(data: Any, place: tuple[int, int]) -> str:
    for number, value in _fields(data, *place):
        if number == 8:
            return _text(data, value)
    return ""


def _opset(data: Any, place: tuple[int, int]) -> tuple[str, int]:
    domain, version = "", 0
    for number, value in _fields(data, *place):
        if number == 1:
            domain = _text(data, value)
        elif number == 2:
            version = int(value)
    return domain, version


def _entry(data: Any, place: tuple[int, int]) -> tuple[str, str]:
    found = {number: _text(data, value) for number, value in _fields(data, *place)}
    return found.get(1, ""), found.get(2, "")


def _text(data: Any, place: tuple[int, int]) -> str:
    return bytes(data[place[0] : place[1]]).decode()


def _fields(data: Any, start: int, end: int) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers as they are, everything else as the place where it lies."""
    while start < end:
        tag, start = _varint(data, start, end)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, start = _varint(data, start, end)
            yield number, value
            continue
        if kind == 2:
            length, start = _varint(data, start, end)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind} at byte {start}")
        if start + length > end or not number:
            raise ValueError(f"a field reaches beyond its message at byte {start}")
        yield number, (start, start + length)
        start += length


def _varint(data: Any, start: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while start < end and shift < 70:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, start
        shift += 7
    raise ValueError(f"a number without an end at byte {start}")
