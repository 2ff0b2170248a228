"""The live view in a terminal, and plain lines where there is none."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainmaster.cli.screen import is_terminal, paint
from trainmaster.records import RunRecord
from trainmaster.widgets.frame import frame
from trainmaster.widgets.view import RunView, look_at
from trainmaster.widgets.watching import moments

if TYPE_CHECKING:
    from trainmaster.run import Run

_WIDE, _HIGH = 120, 1000


def show_in_terminal(run: Run, output: IO[str]) -> None:
    """Shows the run until it has ended; Ctrl-C ends only the looking."""
    live = is_terminal(output) and os.environ.get("TERM", "dumb") != "dumb"
    try:
        _show_live(run, output) if live else _show_lines(run, output)
    except KeyboardInterrupt:
        output.write(f"\nNot looking any more; run {run.id} goes on.\n")
        output.flush()


def _show_live(run: Run, output: IO[str]) -> None:
    # The cursor stays visible and no mode is changed: whatever ends this program, the terminal is as it was.
    drawn = 0
    for _ in moments(run):
        columns, rows = shutil.get_terminal_size()
        lines = frame(look_at(run), time.time(), max(20, columns - 1), max(5, rows - 1), _painted)
        _write(output, redrawn(lines, drawn))
        drawn = len(lines)


def redrawn(lines: list[str], above: int) -> str:
    """What draws `lines` over the `above` lines that were drawn before.

    >>> redrawn(["a"], 2)
    '\\x1b[2Aa\\x1b[K\\n\\x1b[J'
    """
    up = f"\x1b[{above}A" if above else ""
    return up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J"


def _show_lines(run: Run, output: IO[str]) -> None:
    """One line for each state, and the whole view at the end."""
    said = ""
    view: RunView | None = None
    for _ in moments(run):
        view = look_at(run)
        word = _state(view.record)
        if word != said and not view.ended:
            _write(output, word + "\n")
            said = word
    assert view is not None
    for line in as_lines(view):
        _write(output, line + "\n")


def _state(record: RunRecord) -> str:
    return f"{record.id}: {record.status}" + (f" ({record.waiting_for})" if record.waiting_for else "")


def as_lines(view: RunView) -> Iterator[str]:
    """The whole view without colours."""
    return iter(frame(view, time.time(), _WIDE, _HIGH, lambda text, styles: text))


def _painted(text: str, styles: str) -> str:
    return paint(text, styles)


def _write(output: IO[str], text: str) -> None:
    try:
        output.write(text)
    except UnicodeEncodeError:
        # A terminal that cannot show a letter must not end the looking.
        encoding: str = getattr(output, "encoding", None) or "ascii"
        output.write(text.encode(encoding, "replace").decode(encoding))
    output.flush()
