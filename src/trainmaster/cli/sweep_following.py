"""Looking at a sweep while it goes: drawn in place on a terminal, a line for each piece of news elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainmaster.sdk.connection import Watch
from trainmaster.sdk.display.screen import draw, draws, note, paint, write
from trainmaster.sdk.display.sweep_frame import frame, news, whole
from trainmaster.sdk.display.table import Paint
from trainmaster.sdk.follow import follow
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import Status
from trainmaster.shared.serialization import from_plain
from trainmaster.tuning.view import SweepView, TrialView

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_LOOK_SECONDS = 1.0
_MOST_AT_LAST = 50
_LEAST_WIDTH, _LEAST_HEIGHT = 20, 5


def look_at(workspace: Workspace, run_id: str) -> SweepView:
    """The sweep as it is now."""
    return from_plain(SweepView, workspace.connection.call("sweeps.view", run_id=run_id))


def looks(workspace: Workspace, run_id: str) -> Iterator[SweepView]:
    """The sweep now, at each change and about once a second, and a last time when it has ended."""
    from trainmaster.sdk.sweeps.run import Looking

    # What has not changed is not sent again.
    looking = Looking(lambda operation, **arguments: workspace.connection.call(operation, run_id=run_id, **arguments))
    with Watch(WorkspaceFolder(workspace.path), run_id) as watch:
        for _ in follow(watch, every=_LOOK_SECONDS):
            view = looking.now()
            yield view
            if view.has_ended:
                return


def follow_sweep(workspace: Workspace, run_id: str, output: IO[str], limit: int | None = None) -> SweepView | None:
    """Shows the sweep on `output` until it has ended, at last its best `limit` trials; None if Ctrl-C ended it."""
    show = _draw if draws(output) else _tell
    try:
        return show(workspace, run_id, output, limit or _MOST_AT_LAST)
    except KeyboardInterrupt:
        note(f"\nNot looking any more; sweep {run_id} goes on.", "yellow")
        note(f"'trainmaster sweep show -f {run_id}' follows it again, 'trainmaster cancel {run_id}' ends it.")
        return None


def _draw(workspace: Workspace, run_id: str, output: IO[str], limit: int) -> SweepView:
    # The cursor stays visible and no mode is changed: whatever ends this program, the terminal is as it was.
    drawn = 0
    for view in looks(workspace, run_id):
        if view.has_ended:
            # What stays on the screen may be more than fits.
            columns = shutil.get_terminal_size().columns - 1
            lines = whole(view, time.time(), max(_LEAST_WIDTH, columns), _painter(output), limit)
        else:
            lines = _fitting(view, output)
        draw(output, lines, drawn)
        drawn = len(lines)
    return view


def _fitting(view: SweepView, output: IO[str]) -> list[str]:
    columns, rows = shutil.get_terminal_size()
    width, height = max(_LEAST_WIDTH, columns - 1), max(_LEAST_HEIGHT, rows - 1)
    return frame(view, time.time(), width, height, _painter(output))


def _tell(workspace: Workspace, run_id: str, output: IO[str], limit: int) -> SweepView:
    teller = Teller(output)
    for view in looks(workspace, run_id):
        teller.tell(view)
    for line in ["", *whole(view, time.time(), None, _painter(output), limit)]:
        write(output, line + "\n")
    return view


class Teller:
    """Says each piece of news once: a trial that runs or has ended, a note, what the sweep waits for."""

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._told: set[str] = set()
        self._ended = 0

    def tell(self, view: SweepView) -> None:
        """What is new in `view`."""
        for text in view.warnings:
            self._once(text, f"note: {text}")
        if view.waiting_for and not view.trials:
            self._once(view.waiting_for, view.waiting_for)
        for trial in view.trials:
            if _is_news(trial) and f"{trial.number} {trial.has_ended}" not in self._told:
                self._ended += trial.has_ended
                line = f"[{self._ended}/{view.total}] {news(view, trial)}"
                self._once(f"{trial.number} {trial.has_ended}", line)

    def _once(self, key: str, line: str) -> None:
        if key not in self._told:
            self._told.add(key)
            write(self._output, line + "\n")


def _is_news(trial: TrialView) -> bool:
    return trial.has_ended or trial.status == Status.RUNNING


def _painter(output: IO[str]) -> Paint:
    return lambda text, styles: paint(text, styles, output)
