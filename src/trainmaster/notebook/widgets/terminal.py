"""The live view in a terminal, and plain lines where there is none."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainmaster.notebook.widgets.frame import frame
from trainmaster.notebook.widgets.view import RunView, look_at
from trainmaster.notebook.widgets.watching import watch_run
from trainmaster.sdk.display.screen import draw, draws, paint, write
from trainmaster.shared.owner import owner_of, this_program
from trainmaster.shared.records import RunRecord

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

_WIDE, _HIGH = 120, 1000


def show_in_terminal(run: Run, output: IO[str]) -> None:
    """Shows the run until it has ended; Ctrl-C ends only the looking. A run of this very program is shown as it is."""
    if _is_ours(run):
        for line in as_lines(look_at(run)):
            write(output, line + "\n")
        return
    try:
        _show_live(run, output) if draws(output) else _show_lines(run, output)
    except KeyboardInterrupt:
        output.write(f"\nNot looking any more; run {run.id} goes on.\n")
        output.flush()


def _is_ours(run: Run) -> bool:
    """Whether this program is the one that logs to it: its end would be waited for in vain."""
    owner = owner_of(run.get_properties())
    return owner is not None and owner == owner_of(this_program())


def _show_live(run: Run, output: IO[str]) -> None:
    # The cursor stays visible and no mode is changed: whatever ends this program, the terminal is as it was.
    drawn = 0
    for _ in watch_run(run):
        columns, rows = shutil.get_terminal_size()
        lines = frame(look_at(run), time.time(), max(20, columns - 1), max(5, rows - 1), _painted)
        draw(output, lines, drawn)
        drawn = len(lines)


def _show_lines(run: Run, output: IO[str]) -> None:
    """One line for each state, and the whole view at the end."""
    said = ""
    view: RunView | None = None
    for _ in watch_run(run):
        view = look_at(run)
        word = _state(view.record)
        if word != said and not view.ended:
            write(output, word + "\n")
            said = word
    assert view is not None
    for line in as_lines(view):
        write(output, line + "\n")


def _state(record: RunRecord) -> str:
    return f"{record.id}: {record.status}" + (f" ({record.waiting_for})" if record.waiting_for else "")


def as_lines(view: RunView) -> Iterator[str]:
    """The whole view without colours."""
    return iter(frame(view, time.time(), _WIDE, _HIGH, lambda text, styles: text))


def _painted(text: str, styles: str) -> str:
    return paint(text, styles)
