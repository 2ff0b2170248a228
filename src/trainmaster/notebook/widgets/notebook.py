"""The live view in a notebook: HTML that is updated until the run has ended, and is saved with the notebook."""

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
    """Shows the run below the cell and returns at once. The view is updated until the run has ended."""
    _LiveView(run, shell).begin()


class _LiveView:
    """One display, updated by a thread while the run lasts, and at the end of every cell.

    The latter is for notebooks that a program executes (nbconvert, papermill): the program receives updates only while
    a cell runs, so that the saved notebook would show an old state.
    """

    def __init__(self, run: Run, shell: Any) -> None:
        self._run = run
        self._shell = shell
        self._guard = threading.Lock()
        self._handle: Any = None
        self._has_ended = False

    def begin(self) -> None:
        import IPython.display

        view = look_at(self._run)
        display: Any = IPython.display.display
        self._handle = display(_bundle(view), raw=True, display_id=True)
        self._has_ended = view.has_ended
        if self._has_ended:
            return
        self._shell.events.register("post_execute", self._finish_cell)
        threading.Thread(target=self._follow, name="RunDetails", daemon=True).start()

    def _follow(self) -> None:
        try:
            for _ in watch_run(self._run):
                self._draw()
                if self._has_ended:
                    return
        except (TrainmasterError, OSError) as error:
            self._give_up(error)

    def _draw(self) -> None:
        with self._guard:
            view = look_at(self._run)
            self._handle.update(_bundle(view), raw=True)
            self._has_ended = self._has_ended or view.has_ended

    def _finish_cell(self) -> None:
        # Even if the thread has drawn the end: what it draws between two cells may not have reached the program.
        try:
            self._draw()
        except (TrainmasterError, OSError) as error:
            self._give_up(error)
        if self._has_ended:
            self._shell.events.unregister("post_execute", self._finish_cell)

    def _give_up(self, error: Exception) -> None:
        """The workspace was deleted, or its dispatcher cannot be reached. The last view stays."""
        with self._guard:
            if not self._has_ended:
                self._has_ended = True
                sys.stderr.write(f"RunDetails stopped following run {self._run.id}: {error}\n")


def _bundle(view: RunView) -> dict[str, str]:
    return {"text/html": page(view, time.time()), "text/plain": "\n".join(as_lines(view))}
