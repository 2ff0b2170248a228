"""When to update the view of a run: when its state changes, when it logs something, and at times for the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainmaster.sdk.backend.backend import JOURNALS, LOGS, RunNews

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

# How often a log that grows all the time is read.
LEAST_SECONDS = 1.0
# How often the clock of an idle run is updated.
MOST_SECONDS = 10.0


def watch_run(run: Run) -> Iterator[None]:
    """Yields whenever the view should be updated: the first time at once, the last time when the run has ended."""
    follow = run.experiment.workspace.backend.follow_run
    state: RunNews | None = None
    for news in follow(run.id, (LOGS, JOURNALS), hold=LEAST_SECONDS, every=MOST_SECONDS):
        state = news or state
        # Not before the state is known, so that a run that has ended is shown only once.
        if state is not None:
            yield
