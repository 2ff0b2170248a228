"""Reads the header of an ONNX file: inputs, outputs, opset, facts. Standard library only.

A file is a Protocol Buffers message. Weights are skipped, so that a file of gigabytes takes milliseconds, and the
package onnx is not needed.
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
    """What `export` wrote into the file; empty for a file of another program."""


def read(path: str | os.PathLike[str]) -> Header:
    """Reads the header of an ONNX file. Raises OnnxException."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return read_header(data)
    except (ValueError, TypeError) as error:
        # TypeError: a field has an unexpected type.
        raise OnnxException(f"{os.fspath(path)} is not an ONNX file", cause=str(error)) from None
    except OSError as error:
        raise OnnxException(f"{os.fspath(path)} cannot be read: {error.strerror}") from None


def read_exported(path: str | os.PathLike[str]) -> Exported:
    """The result of `export`, from a file that it wrote. Raises OnnxException."""
    return make_exported(path, read(path).facts)


def make_exported(path: str | os.PathLike[str], facts: dict[str, Any]) -> Exported:
    """The result of `export` from the facts in the metadata of its file. Raises OnnxException."""
    try:
        quantized = facts["quantized"]
        return Exported(
            os.fspath(path),
            facts["framework"],
            facts["framework_version"],
            facts["exporter"],
            facts["opset"],
            _make_tensors(facts["inputs"]),
            _make_tensors(facts["outputs"]),
            Parity(**{**facts["parity"], "batches": tuple(facts["parity"]["batches"])}),
            None if quantized is None else Quantized(**quantized),
            tuple(facts["notes"]),
        )
    except (KeyError, TypeError):
        raise OnnxException(f"{os.fspath(path)} was not written by trainmaster.onnx.export") from None


def _make_tensors(plain: list[dict[str, Any]]) -> tuple[Tensor, ...]:
    shapes = (None if each["shape"] is None else tuple(each["shape"]) for each in plain)
    return tuple(Tensor(each["name"], each["type"], shape) for each, shape in zip(plain, shapes))


def read_header(data: Any) -> Header:
    """The header of a file whose bytes `data` has. Raises ValueError or TypeError."""
    opset, producer, graph = 0, "", None
    facts: dict[str, Any] = {}
    for number, value in read_fields(data, 0, len(data)):
        if number == _MODEL_PRODUCER:
            producer = read_text(data, value)
        elif number == _MODEL_GRAPH:
            graph = value
        elif number == _MODEL_OPSET:
            domain, version = _read_opset(data, value)
            opset = version if domain in ("", "ai.onnx") else opset
        elif number == _MODEL_FACTS:
            key, text = _read_entry(data, value)
            facts = json.loads(text) if key == FACTS_KEY else facts
    if graph is None or not opset:
        raise ValueError("it contains no graph")
    inputs, outputs = _read_inputs_and_outputs(data, graph)
    return Header(opset, producer, inputs, outputs, facts)


def _read_inputs_and_outputs(data: Any, graph: tuple[int, int]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    inputs, outputs, weights = [], [], set()
    for number, value in read_fields(data, *graph):
        if number == _GRAPH_INPUT:
            inputs.append(_read_tensor(data, value))
        elif number == _GRAPH_OUTPUT:
            outputs.append(_read_tensor(data, value))
        elif number == _GRAPH_INITIALIZER:
            weights.add(_read_weight_name(data, value))
    # Old files list their weights as inputs.
    return tuple(each for each in inputs if each.name not in weights), tuple(outputs)


def _read_tensor(data: Any, span: tuple[int, int]) -> Tensor:
    name, kind, shape = "", "unknown", None
    for number, value in read_fields(data, *span):
        if number == 1:
            name = read_text(data, value)
        elif number == 2:
            for inner, tensor in read_fields(data, *value):
                if inner == 1:
                    kind, shape = _read_type(data, tensor)
    return Tensor(name, kind, shape)


def _read_type(data: Any, span: tuple[int, int]) -> tuple[str, tuple[int | str | None, ...] | None]:
    kind, shape = "unknown", None
    for number, value in read_fields(data, *span):
        if number == 1:
            kind = _TYPES.get(value, "unknown")
        elif number == 2:
            shape = tuple(_read_size(data, size) for inner, size in read_fields(data, *value) if inner == 1)
    return kind, shape


def _read_size(data: Any, span: tuple[int, int]) -> int | str | None:
    for number, value in read_fields(data, *span):
        if number == 1:
            return int(value)
        if number == 2:
            return read_text(data, value) or None
    return None


def _read_weight_name(data: Any, span: tuple[int, int]) -> str:
    for number, value in read_fields(data, *span):
        if number == 8:
            return read_text(data, value)
    return ""


def _read_opset(data: Any, span: tuple[int, int]) -> tuple[str, int]:
    domain, version = "", 0
    for number, value in read_fields(data, *span):
        if number == 1:
            domain = read_text(data, value)
        elif number == 2:
            version = int(value)
    return domain, version


def _read_entry(data: Any, span: tuple[int, int]) -> tuple[str, str]:
    found = {number: read_text(data, value) for number, value in read_fields(data, *span)}
    return found.get(1, ""), found.get(2, "")


def read_text(data: Any, span: tuple[int, int]) -> str:
    """The text of a field."""
    return bytes(data[span[0] : span[1]]).decode()


def read_fields(data: Any, start: int, end: int) -> Iterator[tuple[int, Any]]:
    """The fields of a message: the values of numbers, and (start, end) of everything else."""
    while start < end:
        tag, start = _read_varint(data, start, end)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, start = _read_varint(data, start, end)
            yield number, value
            continue
        if kind == 2:
            length, start = _read_varint(data, start, end)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"unknown field type {kind} at byte {start}")
        if start + length > end or not number:
            raise ValueError(f"a field exceeds its message at byte {start}")
        yield number, (start, start + length)
        start += length


def _read_varint(data: Any, start: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while start < end and shift < 70:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, start
        shift += 7
    raise ValueError(f"an unterminated number at byte {start}")
