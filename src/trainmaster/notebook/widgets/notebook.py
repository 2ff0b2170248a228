"""The live view in a notebook: HTML that is replaced as the run goes on, and stays as it is in what is saved."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import TrainmasterError
from trainmaster.notebook.widgets.page import page
from trainmaster.notebook.widgets.terminal import as_lines
from trainmaster.notebook.widgets.view import RunView, look_at
from trainmaster.notebook.widgets.watching import watch_run

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run


def notebook_shell() -> Any:
    """The shell of a notebook's kernel; None in a terminal or a plain program."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def show_in_notebook(run: Run, shell: Any) -> None:
    """Shows the run below the cell and returns; the view goes on until the run has ended."""
    _LiveView(run, shell).begin()


class _LiveView:
    """One display, drawn by a thread while the run goes and once more at the end of every cell.

    Without the latter the saved notebook of a program (nbconvert, papermill) would show an old state: such a
    program looks only while a cell runs.
    """

    def __init__(self, run: Run, shell: Any) -> None:
        self._run = run
        self._shell = shell
        self._guard = threading.Lock()
        self._handle: Any = None
        self._ended = False

    def begin(self) -> None:
        import IPython.display as shown

        view = look_at(self._run)
        display: Any = shown.display
        self._handle = display(_bundle(view), raw=True, display_id=True)
        self._ended = view.ended
        if self._ended:
            return
        self._shell.events.register("post_execute", self._at_end_of_cell)
        threading.Thread(target=self._follow, name="RunDetails", daemon=True).start()

    def _follow(self) -> None:
        try:
            for _ in watch_run(self._run):
                self._draw()
                if self._ended:
                    return
        except (TrainmasterError, OSError) as error:
            self._give_up(error)

    def _draw(self) -> None:
        with self._guard:
            view = look_at(self._run)
            self._handle.update(_bundle(view), raw=True)
            self._ended = self._ended or view.ended

    def _at_end_of_cell(self) -> None:
        # Also when the thread has seen the end: what it draws between two cells does not reach every program.
        try:
            self._draw()
        except (TrainmasterError, OSError) as error:
            self._give_up(error)
        if self._ended:
            self._shell.events.unregister("post_execute", self._at_end_of_cell)

    def _give_up(self, error: Exception) -> None:
        """The workspace is gone, or its dispatcher cannot be had: what is shown stays."""
        with self._guard:
            if not self._ended:
                self._ended = True
                sys.stderr.write(f"RunDetails does not follow run {self._run.id} any more: {error}\n")


def _bundle(view: RunView) -> dict[str, str]:
    return {"text/html": page(view, time.time()), "text/plain": "\n".join(as_lines(view))}
