"""TensorBoard's event files: records with checksums around protocol buffers. Pure, standard library only.

A file is a sequence of records: length, checksum of the length, data, checksum of the data. The data is an `Event`
(field numbers as in TensorFlow's event.proto, summary.proto and tensor.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

# Every file begins with an event that names the version of the format.
_VERSION = b"brain.Event:2"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_STRING_TENSOR = 7


def event_file(created: float, events: Iterable[bytes]) -> Iterable[bytes]:
    """The records of a file, in order."""
    yield record(_double(1, created) + _field(3, _VERSION))
    for event in events:
        yield record(event)


def scalar(tag: str, value: float, step: int, time: float) -> bytes:
    """One number of the series `tag`."""
    return _event(step, time, _text(1, tag) + _key(2, _FIXED32) + struct.pack("<f", _as_float32(value)))


def text(tag: str, value: str, step: int, time: float) -> bytes:
    """One text of the series `tag`."""
    plugin = _field(1, _text(1, "text"))
    tensor = _number(1, _STRING_TENSOR) + _field(2, b"") + _field(8, value.encode("utf-8", "replace"))
    return _event(step, time, _text(1, tag) + _field(8, tensor) + _field(9, plugin))


def image(tag: str, encoded: bytes, step: int, time: float) -> bytes:
    """One picture (the bytes of a PNG, JPEG or GIF file) of the series `tag`."""
    height, width = _size_of_png(encoded)
    picture = _number(1, height) + _number(2, width) + _number(3, 4) + _field(4, encoded)
    return _event(step, time, _text(1, tag) + _field(4, picture))


def record(data: bytes) -> bytes:
    """`data` with its length and both checksums."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _mask(crc32c(length))) + data + struct.pack("<I", _mask(crc32c(data)))


def _event(step: int, time: float, value: bytes) -> bytes:
    return _double(1, time) + _number(2, step) + _field(5, _field(1, value))


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _number(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value & 0xFFFFFFFFFFFFFFFF)


def _double(field: int, value: float) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<d", value)


def _field(field: int, data: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(data)) + data


def _text(field: int, value: str) -> bytes:
    return _field(field, value.encode("utf-8", "replace"))


def _varint(value: int) -> bytes:
    """
    >>> _varint(1), _varint(300)
    (b'\\x01', b'\\xac\\x02')
    """
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _as_float32(value: float) -> float:
    """The value as a 32-bit float; a larger one becomes infinite."""
    number = float(value)
    if number - number == 0 and abs(number) > 3.4028235e38:
        return float("inf") if number > 0 else float("-inf")
    return number


def _size_of_png(encoded: bytes) -> tuple[int, int]:
    """Height and width; 0 for other formats, which TensorBoard shows as well."""
    if encoded[:8] != b"\x89PNG\r\n\x1a\n" or len(encoded) < 24:
        return 0, 0
    width, height = struct.unpack(">II", encoded[16:24])
    return height, width


def _table() -> list[int]:
    entries = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        entries.append(number)
    return entries


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
