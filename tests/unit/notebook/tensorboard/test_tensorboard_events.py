"""Event files: read back by TensorBoard's own reader, and refused by it when a byte is wrong."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.notebook.tensorboard import events


def written(folder: Path, *parts: bytes) -> Path:
    path = folder / "events.out.tfevents.test"
    path.write_bytes(b"".join(events.event_file(1000.0, parts)))
    return path


def read(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def small_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\x00" + b"\xff\x00\x00" * 3 for _ in range(2)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_scalars_come_back_with_steps_and_times(tmp_path: Path) -> None:
    written(
        tmp_path,
        events.scalar("loss", 0.5, 0, 1000.25),
        events.scalar("loss", -2.25, 70_000_000_000, 1001.5),
        events.scalar("größe", 1e300, -1, 1002.0),
    )
    found = read(tmp_path)
    assert [(e.step, e.value, e.wall_time) for e in found.Scalars("loss")] == [
        (0, 0.5, 1000.25),
        (70_000_000_000, -2.25, 1001.5),
    ]
    assert [(e.step, e.value) for e in found.Scalars("größe")] == [(-1, math.inf)]


@given(st.floats(width=32), st.integers(0, 2**62), st.text(min_size=1, max_size=300))
def test_any_number_and_any_name(tmp_path_factory: pytest.TempPathFactory, value: float, step: int, tag: str) -> None:
    folder = tmp_path_factory.mktemp("events")
    written(folder, events.scalar(tag, value, step, 1000.0))
    found = read(folder)
    (name,) = found.Tags()["scalars"]
    assert name == tag.encode("utf-8", "replace").decode()
    (event,) = found.Scalars(name)
    assert event.step == step
    assert event.value == value or (math.isnan(value) and math.isnan(event.value))


def test_texts_come_back(tmp_path: Path) -> None:
    written(tmp_path, events.text("note", "höher", 3, 1000.0))
    found = read(tmp_path)
    (event,) = found.Tensors("note")
    assert (event.step, event.tensor_proto.string_val[0].decode()) == (3, "höher")
    assert found.SummaryMetadata("note").plugin_data.plugin_name == "text"


def test_pictures_come_back(tmp_path: Path) -> None:
    written(tmp_path, events.image("plot", small_png(), 1, 1000.0), events.image("other", b"GIF89a", 0, 1000.0))
    found = read(tmp_path)
    (event,) = found.Images("plot")
    assert (event.width, event.height, event.encoded_image_string) == (3, 2, small_png())
    assert found.Images("other")[0].encoded_image_string == b"GIF89a"


def test_a_wrong_byte_is_noticed_by_the_reader(tmp_path: Path) -> None:
    """The checksums are checked: with wrong ones the tests above could not pass."""
    from tensorboard.compat.tensorflow_stub import errors, pywrap_tensorflow

    path = written(tmp_path, events.scalar("loss", 0.5, 0, 1000.0))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
    reader = pywrap_tensorflow.PyRecordReader_New(str(path))
    reader.GetNext()
    with pytest.raises(errors.DataLossError):
        reader.GetNext()
