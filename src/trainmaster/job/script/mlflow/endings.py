"""How runs end that a script has started with MLflow beside the run of its job.

The end of a run is final. But libraries open a run again that has just failed: for a trial that Optuna prunes, MLflow
notes a failure, because the function of the trial was left by an exception; then Optuna's callback opens the run again
and ends it well. So a failure counts when the script goes on with another run, or ends.
"""

import atexit

from mlflow.entities import RunStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Endings(object):
    """Ends the children of a job's run."""

    def __init__(self) -> None:
        self._failed: "Any" = None
        """The run whose failure does not count yet."""
        atexit.register(self.confirm)

    def note(self, run: "Any", status: "Any") -> None:
        """Ends a run, or opens the one again that has just failed."""
        self.confirm(run)
        self._failed = run if status == RunStatus.FAILED else None
        if status == RunStatus.FINISHED:
            run.complete()
        elif status == RunStatus.KILLED:
            run.cancel()

    def confirm(self, goes_on_with: "Any" = None) -> None:
        """The script has gone on with another run, or with none."""
        failed = self._failed
        if failed is not None and failed is not goes_on_with:
            self._failed = None
            failed.fail()
