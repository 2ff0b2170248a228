"""A zip archive that is written while it is sent."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster.server.files.archives import write_archive
from trainmaster.server.files.listing import FileEntry
from trainmaster.server.files.opening import NotBeneathError
from trainmaster.server.files.sending import Read

FILES = {"a.txt": b"text", "deep/größe.bin": bytes(range(256)) * 20_000, "empty": b""}


@contextmanager
def open_file(name: str) -> Iterator[Read]:
    if name not in FILES:
        raise NotBeneathError(name)
    yield lambda start, size: FILES[name][start : start + size]


def test_the_archive_has_the_files_and_no_piece_is_large() -> None:
    entries = [FileEntry(name, len(data), 0.0) for name, data in FILES.items()]
    pieces = list(write_archive(entries, open_file))
    assert max(map(len, pieces)) < 3 << 20
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == FILES


def test_a_file_that_vanished_is_left_out_and_one_that_grew_is_cut() -> None:
    entries = [FileEntry("gone", 5, 0.0), FileEntry("a.txt", 2, 0.0), FileEntry("empty", 100, 0.0)]
    with zipfile.ZipFile(io.BytesIO(b"".join(write_archive(entries, open_file)))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"a.txt": b"te", "empty": b""}
