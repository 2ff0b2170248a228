"""The logs of a run as clients see them: with secrets hidden, from any offset, and through all attempts.

Hiding keeps the length of a text, so offsets in a masked log are those of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from trainmaster.sdk.backend.backend import LogFile
from trainmaster.server.files.opening import NotBeneathError, OpenFile, enter_folder, open_beneath
from trainmaster.server.files.run_place import RunPlace
from trainmaster.shared.redaction import Mask

FOLDER = "azureml-logs"
MOST_AT_ONCE = 1 << 20
"""The longest part of a log in one answer."""


def list_logs(place: RunPlace) -> list[LogFile]:
    """All logs by name; of logs with the same name, those of earlier attempts come first.

    Links are left out. The folders are listed again if logs moved meanwhile, so that none appears twice or is missed.
    """
    while True:
        found = _list_once(place)
        again = _list_once(place)
        if [(log.name, log.identity) for log in found] == [(log.name, log.identity) for log in again]:
            return sorted(again, key=lambda log: log.place)


def _list_once(place: RunPlace) -> list[LogFile]:
    found: list[LogFile] = []
    try:
        with enter_folder(place.workspace, ("runs", place.run_id, "files", FOLDER)) as top, os.scandir(top) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and entry.name.removeprefix("attempt_").isdecimal():
                    found += _list_attempt(top, entry.name)
                else:
                    found += _list_entry(entry, "")
    except (OSError, NotBeneathError):
        # The run has no logs yet.
        return []
    return found


def _list_attempt(top: int, name: str) -> list[LogFile]:
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        with os.scandir(handle) as entries:
            return [log for entry in entries for log in _list_entry(entry, f"{name}/")]
    finally:
        os.close(handle)


def _list_entry(entry: os.DirEntry[str], prefix: str) -> list[LogFile]:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        # Just moved away.
        return []
    if not entry.is_file(follow_symlinks=False) or entry.name.startswith(".partial-"):
        return []
    return [LogFile(prefix + entry.name, str(found.st_ino), found.st_size)]


def list_sequence(logs: Sequence[LogFile], name: str) -> list[LogFile]:
    """The logs that a client who follows `name` reads one after the other: those of all attempts.

    The log of one failed attempt is followed alone.
    """
    if "/" in name:
        return [log for log in logs if log.name == name]
    return [log for log in logs if log.last_name == name]


def open_log(place: RunPlace, name: str) -> OpenFile:
    """Open a log by its name within `azureml-logs`. Raises NotBeneathError."""
    logs = locate_log(place, "")
    return open_beneath(logs, name, [logs])


def locate_log(place: RunPlace, name: str) -> str:
    """The path of a log, or of their folder without a name. It must not be opened: `open_log` checks it."""
    return f"{place.path}/files/{FOLDER}/{name}".rstrip("/")


def read_masked(handle: int, start: int, size: int, fetch_mask: Callable[[], Mask]) -> bytes:
    """At most `size` bytes of a log from `start` on, with secrets hidden.

    At the end of the log, the beginning of a secret is hidden too, because the rest of it may follow.
    """
    data = os.pread(handle, size, start)
    # Fetched after reading: the script had received every secret that it may have printed in this part.
    mask = fetch_mask()
    if not mask or not data:
        return data
    first = max(0, start - mask.reach)
    before = os.pread(handle, start - first, first)
    after = os.pread(handle, mask.reach, start + len(data))
    return mask.hide_next(before, data + after)[: len(data)]


def cut_text(data: bytes, is_last: bool) -> bytes:
    """The part of `data` that ends with a whole character, for a text that is sent in pieces.

    >>> cut_text("aé".encode()[:-1], is_last=False), cut_text("é".encode(), is_last=False)
    (b'a', b'\\xc3\\xa9')
    """
    if is_last:
        return data
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte < 0x80:
            return data
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
    return data


def skip_torn_start(data: bytes) -> int:
    """How many bytes of `data` belong to a character that began before it.

    >>> skip_torn_start("é!".encode()[1:])
    1
    """
    count = 0
    while count < min(3, len(data)) and 0x80 <= data[count] < 0xC0:
        count += 1
    return count
