"""Shows the output of a run until its end, and how it ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from typing import IO, TYPE_CHECKING, Protocol

from trainmaster.cli.opening import get_run
from trainmaster.sdk.display.describing import style_of, took
from trainmaster.sdk.display.screen import is_terminal, note, paint
from trainmaster.sdk.display.text import duration, first_line, without_lines
from trainmaster.sdk.run.logs import LogReader, Print
from trainmaster.shared.records import RunRecord, Status

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

# No process has this rank: a reader for it shows only the preparation of the run.
_NO_RANK = -1


class Reader(Protocol):
    """Reads what is added to the logs of a run."""

    def show(self, show: Print) -> None: ...

    def finish(self, show: Print) -> None: ...


def follow(
    workspace: Workspace,
    run_id: str,
    output: IO[str],
    reader: Reader | None = None,
    shown_warnings: Collection[str] = (),
) -> RunRecord | None:
    """Shows what the script prints on `output` until the run has ended. Returns None after Ctrl-C.

    `reader` chooses the ranks; the default is rank 0. The preparation of the run, what it waits for and how it ended
    go to standard error, with all warnings that are not in `shown_warnings`.
    """
    follower = _Follower(workspace, run_id, output, reader)
    try:
        follower.follow()
        record = get_run(workspace, run_id)
    except KeyboardInterrupt:
        note(f"\nStopped watching; run {run_id} continues.", "yellow")
        note(f"'trainmaster logs -f {run_id}' follows it again, 'trainmaster cancel {run_id}' ends it.")
        return None
    show_end(record, shown_warnings, follower.preparation)
    return record


class _Follower:
    """Prints the logs of one run and what it waits for."""

    def __init__(self, workspace: Workspace, run_id: str, output: IO[str], reader: Reader | None) -> None:
        self._workspace = workspace
        self._run_id = run_id
        self._output = output
        files = workspace.backend.run_files(run_id)
        self._script = reader or LogReader(files, headings=False)
        self._system = LogReader(files, _NO_RANK, headings=True)
        self._last_reason = ""
        self._last_text = "\n"
        self.preparation = ""
        """The part of the preparation's log that was shown."""

    def follow(self) -> None:
        """Prints until the run has ended."""
        for news in self._workspace.backend.follow_run(self._run_id):
            if news is not None and news["status"] in (Status.PREPARING, Status.QUEUED):
                self._say_reason()
            self._show()
        self._system.finish(self._show_preparation)
        self._script.finish(self._print)
        if not self._last_text.endswith("\n") and is_terminal(self._output):
            # The sentence about the end starts on a new line.
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
        self._last_text = text or self._last_text

    def _say_reason(self) -> None:
        reason = get_run(self._workspace, self._run_id).waiting_for
        if reason and reason != self._last_reason:
            self._last_reason = reason
            note(reason)


def show_end(record: RunRecord, shown_warnings: Collection[str] = (), preparation: str = "") -> None:
    """Prints how a run ended, in one or a few lines on standard error, and its warnings except for `shown_warnings`.

    Lines of the error that the log of the `preparation` contained are not repeated.
    """
    seconds = took(record, time.time())
    word = paint(str(record.status), f"bold {style_of(record.status)}".strip(), sys.stderr)
    line = f"{word}{f' after {duration(seconds)}' if seconds is not None else ''}"
    if record.error is not None:
        line += f": {first_line(record.error.message)}"
        # The last lines of the script are on the screen already. Anything else is only in the error.
        has_tail = bool(record.error.details.get("tail"))
        more = record.error.details.get("hint", "") if has_tail else record.error.message.partition("\n")[2]
        line += "".join(f"\n  {text}" for text in without_lines(str(more), preparation).splitlines())
    sys.stderr.write(line + "\n")
    for text in record.warnings:
        if text not in shown_warnings:
            note(f"note: {text}", "yellow")
    sys.stderr.flush()


def _to_stderr(text: str) -> None:
    sys.stderr.write(paint(text, "dim", sys.stderr) if is_terminal(sys.stderr) else text)
    sys.stderr.flush()
