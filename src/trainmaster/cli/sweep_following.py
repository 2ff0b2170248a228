"""Watching a sweep: redrawn in place on a terminal, otherwise one line for each change."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainmaster.sdk.display.screen import draw, draws, note, paint, write
from trainmaster.sdk.display.sweep_frame import frame, news, whole
from trainmaster.sdk.display.table import Paint
from trainmaster.shared.records import Status
from trainmaster.shared.serialization import from_plain
from trainmaster.tuning.view import SweepView, TrialView

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_LOOK_SECONDS = 1.0
_MOST_TRIALS = 50
_LEAST_WIDTH, _LEAST_HEIGHT = 20, 5


def look_at(workspace: Workspace, run_id: str) -> SweepView:
    """The sweep as it is now."""
    return from_plain(SweepView, workspace.connection.call("sweeps.view", run_id=run_id))


def watch_sweep(workspace: Workspace, run_id: str) -> Iterator[SweepView]:
    """Yields the sweep now, at each change, at least once a second, and a last time when it has ended."""
    from trainmaster.sdk.sweeps.run import Looking

    # It fetches only what has changed.
    looking = Looking(lambda operation, **arguments: workspace.connection.call(operation, run_id=run_id, **arguments))
    for _ in workspace.backend.follow_run(run_id, (), every=_LOOK_SECONDS):
        view = looking.now()
        yield view
        if view.has_ended:
            return


def follow_sweep(workspace: Workspace, run_id: str, output: IO[str], limit: int | None = None) -> SweepView | None:
    """Shows the sweep on `output` until it has ended, then its best `limit` trials. Returns None after Ctrl-C."""
    show = _draw if draws(output) else _print_changes
    try:
        return show(workspace, run_id, output, limit or _MOST_TRIALS)
    except KeyboardInterrupt:
        note(f"\nStopped watching; sweep {run_id} continues.", "yellow")
        note(f"'trainmaster sweep show -f {run_id}' follows it again, 'trainmaster cancel {run_id}' ends it.")
        return None


def _draw(workspace: Workspace, run_id: str, output: IO[str], limit: int) -> SweepView:
    # The cursor stays visible and no mode is changed, so that the terminal is intact however this program ends.
    drawn = 0
    for view in watch_sweep(workspace, run_id):
        if view.has_ended:
            # The last view stays on the screen, and may be longer than it.
            columns = shutil.get_terminal_size().columns - 1
            lines = whole(view, time.time(), max(_LEAST_WIDTH, columns), _painter(output), limit)
        else:
            lines = _fit_frame(view, output)
        draw(output, lines, drawn)
        drawn = len(lines)
    return view


def _fit_frame(view: SweepView, output: IO[str]) -> list[str]:
    columns, rows = shutil.get_terminal_size()
    width, height = max(_LEAST_WIDTH, columns - 1), max(_LEAST_HEIGHT, rows - 1)
    return frame(view, time.time(), width, height, _painter(output))


def _print_changes(workspace: Workspace, run_id: str, output: IO[str], limit: int) -> SweepView:
    printer = ChangePrinter(output)
    for view in watch_sweep(workspace, run_id):
        printer.print(view)
    for line in ["", *whole(view, time.time(), None, _painter(output), limit)]:
        write(output, line + "\n")
    return view


class ChangePrinter:
    """Prints each change once: a trial that runs or has ended, a warning, what the sweep waits for."""

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._printed: set[str] = set()
        self._ended = 0

    def print(self, view: SweepView) -> None:
        """Prints what is new in `view`."""
        for text in view.warnings:
            self._print_once(text, f"note: {text}")
        if view.waiting_for and not view.trials:
            self._print_once(view.waiting_for, view.waiting_for)
        for trial in view.trials:
            key = f"{trial.number} {trial.has_ended}"
            if _is_worth_a_line(trial) and key not in self._printed:
                self._ended += trial.has_ended
                self._print_once(key, f"[{self._ended}/{view.total}] {news(view, trial)}")

    def _print_once(self, key: str, line: str) -> None:
        if key not in self._printed:
            self._printed.add(key)
            write(self._output, line + "\n")


def _is_worth_a_line(trial: TrialView) -> bool:
    return trial.has_ended or trial.status == Status.RUNNING


def _painter(output: IO[str]) -> Paint:
    return lambda text, styles: paint(text, styles, output)
