"""RunDetails: a live view of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run


class RunDetails:
    """A live view of a run: errors first, then state, metrics, processes and the end of the log.

    >>> RunDetails(run).show()                      # doctest: +SKIP

    In a notebook `show` returns at once, and the view is updated until the run has ended. In a terminal it returns when
    the run has ended; Ctrl-C stops watching, and the run continues. A run that this program started with
    `start_logging` is shown once, as it is now.
    """

    def __init__(self, run_instance: Run) -> None:
        from trainmaster.sdk.run.run import Run

        if not isinstance(run_instance, Run):
            raise UserErrorException(
                f"RunDetails shows a run, not {type(run_instance).__name__}",
                hint="experiment.submit returns a run; workspace.get_run(run_id) finds one.",
            )
        self._run = run_instance

    def show(self, render_lib: Any = None, widget_settings: Any = None) -> None:
        """Shows the run. The parameters are those of v1 and have no effect."""
        from trainmaster.notebook.widgets.notebook import notebook_shell, show_in_notebook
        from trainmaster.notebook.widgets.terminal import show_in_terminal

        shell = notebook_shell()
        if shell is not None:
            show_in_notebook(self._run, shell)
        else:
            show_in_terminal(self._run, sys.stdout)

    def get_widget_data(self, widget_settings: Any = None) -> dict[str, Any]:
        """What the view shows, as plain data."""
        from trainmaster.notebook.widgets.view import look_at, widget_data

        return widget_data(look_at(self._run))
