"""The live view in a terminal, and plain lines where there is no terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainmaster.notebook.widgets.frame import frame
from trainmaster.notebook.widgets.view import RunView, look_at
from trainmaster.notebook.widgets.watching import watch_run
from trainmaster.sdk.display.screen import draw, draws, paint, write
from trainmaster.shared.records import RunRecord

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

_WIDE, _HIGH = 120, 1000


def show_in_terminal(run: Run, output: IO[str]) -> None:
    """Shows the run until it has ended or Ctrl-C is pressed. A run of this program itself is shown once."""
    if _is_ours(run):
        for line in as_lines(look_at(run)):
            write(output, line + "\n")
        return
    try:
        _show_live(run, output) if draws(output) else _show_lines(run, output)
    except KeyboardInterrupt:
        output.write(f"\nStopped watching; run {run.id} continues.\n")
        output.flush()


def _is_ours(run: Run) -> bool:
    """Whether this program itself logs to the run, so that waiting for its end would never return."""
    return run.experiment.workspace.backend.is_logged_here(run.id, run.get_properties())


def _show_live(run: Run, output: IO[str]) -> None:
    # The cursor stays visible and no mode is changed, so that the terminal is intact however this program ends.
    drawn = 0
    for _ in watch_run(run):
        columns, rows = shutil.get_terminal_size()
        lines = frame(look_at(run), time.time(), max(20, columns - 1), max(5, rows - 1), paint)
        draw(output, lines, drawn)
        drawn = len(lines)


def _show_lines(run: Run, output: IO[str]) -> None:
    """One line for each state, and the whole view at the end."""
    last_line = ""
    view: RunView | None = None
    for _ in watch_run(run):
        view = look_at(run)
        line = _state(view.record)
        if line != last_line and not view.has_ended:
            write(output, line + "\n")
            last_line = line
    assert view is not None
    for line in as_lines(view):
        write(output, line + "\n")


def _state(record: RunRecord) -> str:
    return f"{record.id}: {record.status}" + (f" ({record.waiting_for})" if record.waiting_for else "")


def as_lines(view: RunView) -> Iterator[str]:
    """The whole view without colours."""
    return iter(frame(view, time.time(), _WIDE, _HIGH, lambda text, styles: text))
