"""Reads the journals of runs into the store."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.journals import Batch, Record, Unusable
from trainmaster.job.agent.shortage import is_temporary
from trainmaster.shared import json_text
from trainmaster.shared.folders import RunFolder

# How long one step and one transaction of it may take, because others wait for the store meanwhile.
_STEP_SECONDS, _CHUNK_SECONDS = 0.006, 0.004
# Bytes per transaction. New metric names take much longer than known ones, so the size adapts.
_LEAST_CHUNK, _FIRST_CHUNK, _LARGEST_CHUNK = 4 * 1024, 32 * 1024, 512 * 1024
# How many bytes may be applied on the event loop, together with the end of a run.
_MOST_AT_ONCE = 32 * 1024
# Trainmaster writes no longer lines.
_LONGEST_LINE = 64 * 1024 * 1024

_POINTS = b'{"k":"points"'
_ABOUT_UNREADABLE = "Folder 'journals': "


@dataclass(frozen=True)
class _Journal:
    """A file in the folder of journals. `problem` says why it cannot be read, if so."""

    path: Path
    size: int = 0
    problem: str = ""


class Ingest:
    """Reads journals and remembers how far; the store has the same offsets and checks them, so nothing is read twice.

    A separate thread reads, in steps of a few milliseconds. The event loop starts each step, so that it gets its turn
    in between and the steps of several runs alternate.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offsets: dict[str, dict[str, int]] = {}
        self._warned: dict[str, str] = {}
        self._chunk_bytes = _FIRST_CHUNK
        self._thread = ThreadPoolExecutor(1, "journals")

    def begin(self, run_id: str) -> None:
        """Notes a new run, for which the store has no offsets yet."""
        self._offsets[run_id] = {}

    async def bring_in(self, run_id: str, folder: RunFolder) -> bool:
        """Reads everything that a run has written to its journals so far into the store.

        Returns whether there was anything new.
        """
        step = asyncio.get_running_loop().run_in_executor
        has_news, unread = await step(self._thread, self._look, run_id, folder)
        while unread:
            unread = await step(self._thread, self._read, run_id, unread)
        return has_news

    def _look(self, run_id: str, folder: RunFolder) -> tuple[bool, list[_Journal]]:
        """Starts to read; returns whether there is unread content, and the journals that still have some."""
        offsets = self._offsets_of(run_id)
        journals = self._readable(run_id, folder)
        unread = [journal for journal in journals if journal.size > offsets.get(journal.path.name, 0)]
        return bool(unread), self._read(run_id, unread)

    def _read(self, run_id: str, unread: list[_Journal]) -> list[_Journal]:
        """Reads for one step; returns the journals that are not yet read up to the size they had at the start."""
        until = time.perf_counter() + _STEP_SECONDS
        while unread and time.perf_counter() < until:
            if not self._read_chunk(run_id, unread[0]):
                unread = unread[1:]
        return unread

    def _read_chunk(self, run_id: str, journal: _Journal) -> bool:
        """Applies one chunk in one transaction; returns whether there is more to read."""
        begun = time.perf_counter()
        name, offsets = journal.path.name, self._offsets_of(run_id)
        start = offsets.get(name, 0)
        end, records = self._chunk(run_id, journal, start)
        if end == start:
            return False
        if not self._store.journals.ingest(run_id, name, start, end, records):
            self._offsets[run_id] = self._store.journals.get_offsets(run_id)
            return True
        offsets[name] = end
        self._chunk_bytes = next_chunk(self._chunk_bytes, time.perf_counter() - begun)
        return journal.size > end

    def _offsets_of(self, run_id: str) -> dict[str, int]:
        offsets = self._offsets.get(run_id)
        if offsets is None:
            offsets = self._offsets[run_id] = self._store.journals.get_offsets(run_id)
        return offsets

    def rest(self, run_id: str, folder: RunFolder) -> list[Batch] | None:
        """All unread records of a run; None if they are too many for the event loop."""
        offsets = self._offsets_of(run_id)
        journals = self._readable(run_id, folder)
        starts = {journal.path.name: offsets.get(journal.path.name, 0) for journal in journals}
        if sum(max(0, journal.size - starts[journal.path.name]) for journal in journals) > _MOST_AT_ONCE:
            return None
        found: list[Batch] = []
        for journal in journals:
            start = starts[journal.path.name]
            end, records = self._chunk(run_id, journal, start, _MOST_AT_ONCE)
            if end > start:
                found.append((journal.path.name, start, end, records))
        return found

    def forget(self, run_id: str) -> None:
        """Drops what is remembered of a run that has ended."""
        self._offsets.pop(run_id, None)
        self._warned.pop(run_id, None)

    def close(self) -> None:
        """Waits for the current step, then stops reading."""
        self._thread.shutdown(cancel_futures=True)

    def _readable(self, run_id: str, folder: RunFolder) -> list[_Journal]:
        """The readable journals of a run. Adds a warning to the run about the others."""
        journals = _journals(folder.journals)
        problems = [journal for journal in journals if journal.problem]
        if problems:
            self._warn(run_id, problems)
        return [journal for journal in journals if not journal.problem]

    def _chunk(self, run_id: str, journal: _Journal, start: int, size: int = 0) -> tuple[int, list[Record]]:
        try:
            return read_chunk(journal.path, start, size or self._chunk_bytes) if journal.size > start else (start, [])
        except OSError as error:
            if is_temporary(error):
                raise
            self._warn(run_id, [replace(journal, problem=_describe_error(error))])
            return start, []

    def _warn(self, run_id: str, problems: list[_Journal]) -> None:
        first = problems[0]
        many = "1 entry" if len(problems) == 1 else f"{len(problems)} entries"
        text = f"{_ABOUT_UNREADABLE}skipped {many} that cannot be read; the first: {first.path.name!r} {first.problem}"
        if self._warned.get(run_id) != text:
            self._store.runs.add_warnings(run_id, text, instead_of=_ABOUT_UNREADABLE)
            self._warned[run_id] = text


def next_chunk(size: int, seconds: float) -> int:
    """The size of the next chunk, after a chunk of `size` bytes took `seconds`.

    >>> next_chunk(32768, 0.001), next_chunk(32768, 0.008), next_chunk(32768, 10.0)
    (65536, 16384, 4096)
    """
    wanted = size * _CHUNK_SECONDS / max(seconds, 1e-9)
    return int(min(max(wanted, _LEAST_CHUNK), 2 * size, _LARGEST_CHUNK))


def read_chunk(journal: Path, start: int, size: int) -> tuple[int, list[Record]]:
    """The complete records from `start` on and the offset of their end: about `size` bytes, or one longer record.

    A line longer than the limit counts as one unusable record; the rest of the line is skipped once it is written.
    """
    with closing(_open(journal)) as file:
        begin = _skip_long_line(file, start)
        while True:
            file.seek(begin)
            text = file.read(size)
            cut = text.rfind(b"\n") + 1
            if cut or len(text) < size:
                return begin + cut, list(_records(text[:cut]))
            if size > _LONGEST_LINE:
                return begin + len(text), [Unusable(f"its line is longer than {_LONGEST_LINE // 2**20} MB")]
            size = min(4 * size, _LONGEST_LINE + 1)


def _open(journal: Path) -> FileIO:
    """Opens the file. A link in its place is refused, and a pipe does not block."""
    return FileIO(os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))


def _skip_long_line(file: FileIO, start: int) -> int:
    """Where the next line starts: at `start`, unless the last chunk ended inside a line that was too long."""
    if start == 0:
        return start
    file.seek(start - 1)
    if file.read(1) in (b"\n", b""):
        return start
    while text := file.read(_LARGEST_CHUNK):
        cut = text.find(b"\n") + 1
        if cut:
            return start + cut
        start += len(text)
    return start


def _records(text: bytes) -> Iterator[Record]:
    for line in text.split(b"\n"):
        if not line:
            continue
        try:
            # What MLflow's clients log has numbers of 64 bits at most.
            record = json_text.parse(line) if line.startswith(_POINTS) else json.loads(line)
        except (ValueError, RecursionError):
            # A process that was killed while writing leaves half a line; its call of `log` did not return.
            continue
        if isinstance(record, dict):
            yield record


def _journals(folder: Path) -> list[_Journal]:
    """All journals, by name. A script may put anything into this folder, or replace it."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        if is_temporary(error):
            raise
        return [_Journal(folder, problem=_describe_error(error))]
    found = [_journal(folder / name) for name in names if name.endswith(".jsonl")]
    return [journal for journal in found if journal is not None]


def _journal(path: Path) -> _Journal | None:
    try:
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode):
            return _Journal(path, problem="is not a regular file")
        path.name.encode()
        if not os.access(path, os.R_OK):
            return _Journal(path, problem=f"cannot be read ({os.strerror(errno.EACCES)})")
    except FileNotFoundError:
        return None
    except UnicodeEncodeError:
        return _Journal(path, problem="has a name that is not UTF-8")
    except OSError as error:
        if is_temporary(error):
            raise
        return _Journal(path, problem=_describe_error(error))
    return _Journal(path, facts.st_size)


def _describe_error(error: OSError) -> str:
    return f"cannot be read ({error.strerror})"
