"""Reads the headers of files that were built byte by byte, and of invalid files."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.exported import FACTS_KEY
from trainmaster.job.onnx.reading import read_exported
from trainmaster.onnx import Exported, Parity, Quantized, Tensor, read

EXPORTED = Exported(
    "model.onnx",
    "PyTorch",
    "2.13.0",
    "torch.onnx 2.13.0",
    20,
    (Tensor("x", "float32", ("batch", 4)),),
    (Tensor("y", "int64", ("batch",)), Tensor("any", "float32", None)),
    Parity(1e-7, 2e-7, 1e-4, (3, 1, 7)),
    Quantized("dynamic", 0.1, 0.2, 1000, 400, 0.97, 0.96),
    ("a note",),
)


def number(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def field(place: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return number(place << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(place << 3 | 2) + number(len(data)) + data


def end(name: str, kind: int, sizes: list[int | str | None] | None) -> bytes:
    """A ValueInfoProto."""
    tensor = field(1, kind)
    if sizes is not None:
        dims = [b"" if size is None else field(1 if isinstance(size, int) else 2, size) for size in sizes]
        tensor += field(2, b"".join(field(1, dim) for dim in dims))
    return field(1, name) + field(2, field(1, tensor))


def model(facts: str = "") -> bytes:
    weight = field(1, 3) + field(2, 1) + field(8, "w") + field(9, struct.pack("<300f", *range(300)))
    graph = field(1, field(4, "Add")) + field(5, weight)
    graph += field(11, end("x", 1, ["batch", 4, None])) + field(11, end("w", 1, [300]))
    graph += field(12, end("y", 7, [])) + field(12, end("z", 8, None))
    opsets = field(8, field(1, "ai.onnx.ml") + field(2, 3)) + field(8, field(2, 20))
    written = field(1, 10) + field(2, "somebody") + opsets + field(7, graph)
    return written + (field(14, field(1, FACTS_KEY) + field(2, facts)) if facts else b"")


def test_inputs_outputs_and_opset(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model())
    header = read(tmp_path / "m.onnx")
    assert (header.opset, header.producer, header.facts) == (20, "somebody", {})
    # A weight that is listed among the inputs is not an input.
    assert header.inputs == (Tensor("x", "float32", ("batch", 4, None)),)
    assert header.outputs == (Tensor("y", "int64", ()), Tensor("z", "object", None))
    assert [str(each) for each in (*header.inputs, *header.outputs)] == [
        "x: float32, batch x 4 x ?",
        "y: int64, one value",
        "z: object, any shape",
    ]


def test_what_export_said_is_kept_in_the_file(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model(json.dumps(EXPORTED.facts())))
    found = read_exported(tmp_path / "m.onnx")
    assert found.facts() == EXPORTED.facts() and found.path == str(tmp_path / "m.onnx")
    text = str(found)
    assert "largest difference 1e-07" in text and "batches of 3, 1, 7" in text and "note    a note" in text
    assert "1000 -> 400 bytes" in text and "accuracy 0.9700 -> 0.9600 (-0.0100)" in text


def test_a_file_from_elsewhere_has_no_such_facts(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model())
    with pytest.raises(OnnxException, match="was not written by"):
        read_exported(tmp_path / "m.onnx")


@given(st.one_of(st.binary(max_size=200), st.tuples(st.integers(0, 1400), st.binary(max_size=8))))
def test_what_is_no_onnx_is_said_in_one_sentence(tmp_path_factory, damage):
    whole = model(json.dumps(EXPORTED.facts()))
    data = damage if isinstance(damage, bytes) else whole[: damage[0]] + damage[1]
    path = tmp_path_factory.mktemp("damaged") / "m.onnx"
    path.write_bytes(data)
    try:
        read(path)
    except OnnxException as error:
        assert "not an ONNX file" in error.message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OnnxException, match="cannot be read: No such file"):
        read(tmp_path / "none.onnx")
