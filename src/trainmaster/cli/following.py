"""Showing a run's output while it goes, and how it ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from typing import IO, TYPE_CHECKING, Protocol

from trainmaster.cli.opening import get_run
from trainmaster.sdk.display.describing import style_of, took
from trainmaster.sdk.display.screen import is_terminal, note, paint
from trainmaster.sdk.display.text import duration, first_line, without_lines
from trainmaster.sdk.follow import follow_run
from trainmaster.sdk.run.logs import LogReader, Print
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import RunRecord, Status

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

# No process has this rank: such a reader shows only what prepared the run.
_NO_RANK = -1


class Reader(Protocol):
    """Something that reads on in the logs of a run."""

    folder: RunFolder

    def show(self, show: Print) -> None: ...

    def finish(self, show: Print) -> None: ...


def follow(
    workspace: Workspace, run_id: str, output: IO[str], reader: Reader | None = None, told: Collection[str] = ()
) -> RunRecord | None:
    """Shows what the script prints on `output` until the run has ended; None if Ctrl-C ended the looking.

    `reader` says which ranks; else it is rank 0. What prepared the run, the states it waits in and how it ended are
    told on standard error; of its warnings only those that were not `told` before.
    """
    follower = _Follower(workspace, run_id, output, reader)
    try:
        follower.follow()
        record = get_run(workspace, run_id)
    except KeyboardInterrupt:
        note(f"\nNot looking any more; run {run_id} goes on.", "yellow")
        note(f"'trainmaster logs -f {run_id}' follows it again, 'trainmaster cancel {run_id}' ends it.")
        return None
    show_end(record, told, follower.preparation)
    return record


class _Follower:
    """The logs of one run, and the news of its state."""

    def __init__(self, workspace: Workspace, run_id: str, output: IO[str], reader: Reader | None) -> None:
        self._workspace = workspace
        self._run_id = run_id
        self._output = output
        self._folder = WorkspaceFolder(workspace.path)
        folder = self._folder.run(run_id)
        self._script = reader or LogReader(folder, headings=False)
        self._system = LogReader(folder, _NO_RANK, headings=True)
        self._said = ""
        self._last = "\n"
        self.preparation = ""
        """What was shown of the preparation of the run."""

    def follow(self) -> None:
        """Shows the logs and the news until the run has ended."""
        for news in follow_run(self._folder, self._run_id, [self._script.folder.logs]):
            if news is not None and news["status"] in (Status.PREPARING, Status.QUEUED):
                self._say_reason()
            self._show()
        self._system.finish(self._show_preparation)
        self._script.finish(self._print)
        if not self._last.endswith("\n") and is_terminal(self._output):
            # What is said about the end begins a line of its own.
            self._print("\n")

    def _show(self) -> None:
        self._system.show(self._show_preparation)
        self._script.show(self._print)

    def _show_preparation(self, text: str) -> None:
        self.preparation += text
        _to_stderr(text)

    def _print(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()
        self._last = text or self._last

    def _say_reason(self) -> None:
        reason = get_run(self._workspace, self._run_id).waiting_for
        if reason and reason != self._said:
            self._said = reason
            note(reason)


def show_end(record: RunRecord, told: Collection[str] = (), preparation: str = "") -> None:
    """How a run ended, in one or a few lines on standard error, and its warnings but for those `told` before.

    Lines of an error that were shown with the `preparation` of the run are not shown again.
    """
    seconds = took(record, time.time())
    word = paint(str(record.status), f"bold {style_of(record.status)}".strip(), sys.stderr)
    line = f"{word}{f' after {duration(seconds)}' if seconds is not None else ''}"
    if record.error is not None:
        line += f": {first_line(record.error.message)}"
        # The last lines of a script were just shown; anything else is only in the error.
        shown = record.error.details.get("tail")
        more = record.error.details.get("hint", "") if shown else record.error.message.partition("\n")[2]
        line += "".join(f"\n  {text}" for text in without_lines(str(more), preparation).splitlines())
    sys.stderr.write(line + "\n")
    for text in record.warnings:
        if text in told:
            continue
        note(f"note: {text}", "yellow")
    sys.stderr.flush()


def _to_stderr(text: str) -> None:
    sys.stderr.write(paint(text, "dim", sys.stderr) if is_terminal(sys.stderr) else text)
    sys.stderr.flush()
