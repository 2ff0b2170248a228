"""Waiting for a run, with its logs as they grow."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ActivityFailedException
from trainmaster.sdk.run.masks import mask_of
from trainmaster.shared.file_events import FileEvents
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import Status
from trainmaster.shared.redaction import Mask
from trainmaster.shared.terminal import Filter, SafeStream, clean, is_terminal

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

Print = Callable[[str], None]
_terminal = Filter()

_SYSTEM_LOG = re.compile(r"(?:20|55|60|65|75|80)_.*\.txt|hyperdrive\.txt")
_DRIVER_LOG = re.compile(r"70_driver_log(?:_(\d+))?\.txt")
_BLOCK = 1 << 20


def wait_for(run: Run, *, show_output: bool, raise_on_error: bool) -> dict[str, Any]:
    """The details of the run when it has ended."""
    try:
        if show_output:
            _stream(run, show_now)
        else:
            _wait(run)
    except KeyboardInterrupt:
        print(f"\nStopped waiting; run {run.id} goes on. 'trainmaster logs -f {run.id}' follows it again.")
        return run.get_details()
    details = run.get_details()
    if details["status"] == Status.FAILED and raise_on_error:
        raise ActivityFailedException(
            f"run {run.id} failed",
            # Python prints it as it is, with the last lines of the script.
            cause=clean(str(details.get("error", {}).get("message", ""))),
            hint="run.get_details()['error'] and run.get_all_logs() tell more.",
        )
    return details


def _wait(run: Run) -> None:
    with run.experiment.workspace._client.watch(run.id) as watch:
        while not watch.next()["ended"]:
            pass


def _stream(run: Run, show: Print) -> None:
    show(f"RunId: {run.id}\nWeb View: {run.get_portal_url()}\n")
    workspace = WorkspaceFolder(run.experiment.workspace.path)
    follow(workspace, run.id, show)
    show(f"\nExecution Summary\n=================\nRunId: {run.id}\nWeb View: {run.get_portal_url()}\n\n")


def follow(workspace: WorkspaceFolder, run_id: str, show: Print, rank: int = 0, headings: bool = True) -> str:
    """Shows the logs of a run as they grow, until it has ended; returns the state it ended in."""
    from trainmaster.sdk.connection import Watch

    reader = LogReader(workspace.run(run_id), rank, headings)
    with Watch(workspace, run_id) as watch, FileEvents() as events:
        while True:
            news = _next_news(watch, events, reader, show)
            if news["ended"]:
                reader.show(show)
                return str(news["status"])


def _next_news(watch: Any, events: FileEvents, reader: LogReader, show: Print) -> dict[str, Any]:
    """The next change of state; meanwhile what the logs gain is shown."""
    while True:
        events.watch(reader.folder.logs)
        reader.show(show)
        if events.wait(watch):
            news: dict[str, Any] = watch.next()
            return news


class GrowingText:
    """Reads on in a text file that others append to. A file that was put in its place is read from its beginning."""

    def __init__(self, path: Path, mask: Callable[[], Mask] = Mask, only: int | None = None) -> None:
        """`mask` gives what has to be hidden as of now. Of the file with identity `only`, no other is read."""
        self.path = path
        self._mask = mask
        self._only = only
        self._begin(None)

    def _begin(self, identity: int | None) -> None:
        self.identity = identity
        """Of the file that is read; another one's text is no continuation."""
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def begun(self) -> bool:
        """Whether any of it was read."""
        return self._offset > 0

    def new(self) -> Iterator[str]:
        """What was added since the last time, in parts."""
        # One that is just moved away has a successor the next time.
        with contextlib.suppress(FileNotFoundError):
            if self._is_new(os.stat(self.path)):
                yield from self._read()

    def _is_new(self, found: os.stat_result) -> bool:
        if self._only not in (None, found.st_ino):
            return False
        if found.st_ino != self.identity or found.st_size < self._offset:
            self._begin(found.st_ino)
        return found.st_size > self._offset

    def _read(self) -> Iterator[str]:
        with open(self.path, "rb") as file:
            if not self._is_new(os.fstat(file.fileno())):
                return
            file.seek(self._offset)
            while block := file.read(_BLOCK):
                # Asked after reading: whatever was printed before now had been given to the script before.
                mask = self._mask()
                start = max(0, self._offset - mask.reach)
                before = os.pread(file.fileno(), self._offset - start, start) if mask else b""
                self._offset = file.tell()
                yield self._decoder.decode(mask.hide_next(before, block))


class RunTexts:
    """The logs of a run by the identity of their files, which they keep when an attempt has failed and they move."""

    def __init__(self, folder: RunFolder) -> None:
        self._mask = partial(mask_of, folder)
        self._found: dict[int, GrowingText] = {}

    def of(self, listed: Callable[[], list[tuple[int, Path]]]) -> list[tuple[int, Path, GrowingText]]:
        """The texts of the logs that are `listed`, each with its rank and its path.

        They are listed again if they moved meanwhile: else the next attempt would be shown before the end of this one.
        """
        while True:
            logs = listed()
            texts = [(rank, path, self._at(path)) for rank, path in logs]
            if logs == listed():
                return [(rank, path, text) for rank, path, text in texts if text is not None]

    def _at(self, path: Path) -> GrowingText | None:
        """The text of the file that is at `path` now; none if it was just moved away."""
        try:
            identity = os.stat(path).st_ino
        except FileNotFoundError:
            return None
        text = self._found.setdefault(identity, GrowingText(path, self._mask, identity))
        text.path = path
        return text


def log_paths(folder: RunFolder) -> list[Path]:
    """All logs by name; those of earlier attempts come before the current one's of the same name."""
    try:
        found = [*folder.logs.iterdir(), *folder.logs.glob("attempt_*/*")]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda path: (path.name, _attempt(path)))


def rank_logs(folder: RunFolder) -> list[tuple[int, Path]]:
    """What each rank printed in each attempt, the first attempt first."""
    found = ((_DRIVER_LOG.fullmatch(path.name), path) for path in log_paths(folder))
    logs = [(int(match[1] or 0), path) for match, path in found if match]
    return sorted(logs, key=lambda each: (_attempt(each[1]), each[0]))


def driver_logs(folder: RunFolder) -> dict[int, Path]:
    """Where each rank that has begun prints to, lowest first."""
    return dict(sorted(dict(rank_logs(folder)).items()))


def _attempt(path: Path) -> float:
    number = path.parent.name.removeprefix("attempt_")
    return int(number) if number.isdecimal() else float("inf")


class LogReader:
    """Reads on in the logs of a run, in the order of their names: what prepared it, then what rank `rank` printed."""

    def __init__(self, folder: RunFolder, rank: int = 0, headings: bool = True) -> None:
        self.folder = folder
        self._rank = rank
        self._headings = headings
        self._texts = RunTexts(folder)

    def show(self, show: Print) -> None:
        """Shows what is new."""
        for _, path, text in self._texts.of(self._followed):
            for part in self._new_text(path, text):
                show(part)

    def finish(self, show: Print) -> None:
        """Shows what is new at the end."""
        self.show(show)

    def _followed(self) -> list[tuple[int, Path]]:
        return [(self._rank, path) for path in log_paths(self.folder) if self._wanted(path.name)]

    def _wanted(self, name: str) -> bool:
        driver = _DRIVER_LOG.fullmatch(name)
        if driver is not None:
            return int(driver[1] or 0) == self._rank
        return self._headings and _SYSTEM_LOG.fullmatch(name) is not None

    def _new_text(self, path: Path, text: GrowingText) -> Iterator[str]:
        begun = text.begun
        for number, part in enumerate(text.new()):
            if number == 0 and not begun and self._headings:
                heading = f"Streaming azureml-logs/{path.relative_to(self.folder.logs)}"
                yield f"\n{heading}\n{'=' * len(heading)}\n\n"
            yield part


def show_now(text: str) -> None:
    """Prints at once; of escape sequences a terminal gets colours alone."""
    if is_terminal(sys.stdout) and not isinstance(sys.stdout, SafeStream):
        text = _terminal.pass_on(text)
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        # A terminal that cannot show a letter must not end the waiting.
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()
