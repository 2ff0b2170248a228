"""When to update the view of a run: when its state changes, when it logs something, and at times for the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainmaster.sdk.backend.local.connection import Watch
from trainmaster.sdk.backend.local.following import follow
from trainmaster.shared.folders import WorkspaceFolder

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

# How often a log that grows all the time is read.
LEAST_SECONDS = 1.0
# How often the clock of an idle run is updated.
MOST_SECONDS = 10.0


def watch_run(run: Run) -> Iterator[None]:
    """Yields whenever the view should be updated: the first time at once, the last time when the run has ended."""
    folders = [run._folder.logs, run._folder.journals]
    with Watch(WorkspaceFolder(run.experiment.workspace.path), run.id) as watch:
        # The state is read first, so that a run that has ended is shown only once.
        news = watch.next()
        for later in follow(watch, folders, hold=LEAST_SECONDS, every=MOST_SECONDS):
            news = later or news
            yield
            if news["ended"]:
                return
