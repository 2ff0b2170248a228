"""When to look at a run again: at news of its state, when it logs something, and now and then for the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainmaster.sdk.connection import Watch
from trainmaster.sdk.follow import follow
from trainmaster.shared.folders import WorkspaceFolder

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

# A log that grows all the time is looked at this often.
LEAST_SECONDS = 1.0
# Where nothing happens, only the clock goes on.
MOST_SECONDS = 10.0


def watch_run(run: Run) -> Iterator[None]:
    """Yields whenever the run should be looked at: the first time at once, the last time when it has ended."""
    folders = [run._folder.logs, run._folder.journals]
    with Watch(WorkspaceFolder(run.experiment.workspace.path), run.id) as watch:
        # The state comes first: a run that has ended is looked at once.
        news = watch.next()
        for later in follow(watch, folders, hold=LEAST_SECONDS, every=MOST_SECONDS):
            news = later or news
            yield
            if news["ended"]:
                return
