"""Reads from shared libraries (ELF files) which other libraries they need."""

from __future__ import annotations

import struct
from pathlib import Path

_BEGINNING = b"\x7fELF\x02\x01"
"""64 bits, little endian."""
_LOADED, _DYNAMIC = 1, 2
_END, _NEEDED, _STRINGS = 0, 1, 5


def list_needed(path: Path) -> tuple[str, ...]:
    """List the libraries that the library at `path` links against; empty for any other file."""
    try:
        return _parse_needed(path.read_bytes())
    except (OSError, struct.error, StopIteration, ValueError):
        return ()


def _parse_needed(data: bytes) -> tuple[str, ...]:
    if not data.startswith(_BEGINNING):
        return ()
    # Each segment: type, flags, file offset, address, physical address, size in file, size in memory, alignment.
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, table + size * number) for number in range(count)]
    places = [segment[2] for segment in segments if segment[0] == _DYNAMIC]
    if not places:
        return ()
    entries = _entries(data, places[0])
    strings = next(value for tag, value in entries if tag == _STRINGS)
    begin = next(each[2] + strings - each[3] for each in segments if _holds(each, strings))
    return tuple(_text(data, begin + value) for tag, value in entries if tag == _NEEDED)


def _entries(data: bytes, place: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while (entry := struct.unpack_from("<QQ", data, place))[0] != _END:
        found.append(entry)
        place += 16
    return found


def _holds(segment: tuple[int, ...], address: int) -> bool:
    return segment[0] == _LOADED and segment[3] <= address < segment[3] + segment[5]


def _text(data: bytes, place: int) -> str:
    return data[place : data.index(b"\0", place)].decode(errors="replace")
