"""When to look at a run again: at news of its state, when it logs something, and now and then for the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainmaster.sdk.connection import Watch
from trainmaster.shared.file_events import FileEvents, ready
from trainmaster.shared.folders import WorkspaceFolder

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

# A log that grows all the time is looked at this often.
LEAST_SECONDS = 1.0
# So often where nothing happens: only the clock goes on.
MOST_SECONDS = 10.0


def moments(run: Run) -> Iterator[bool]:
    """Yields whenever the run should be looked at, the first time at once; true for the last time, when it ended."""
    workspace = WorkspaceFolder(run.experiment.workspace.path)
    with Watch(workspace, run.id) as watch, FileEvents() as events:
        ended = bool(watch.next()["ended"])
        while not ended:
            yield False
            ended = _await(run, watch, events)
        yield True


def _await(run: Run, watch: Watch, events: FileEvents) -> bool:
    """Returns when something happened, or time has passed; whether the run has ended."""
    folders = [folder for folder in (run._folder.logs, run._folder.journals) if folder.is_dir()]
    for folder in folders:
        events.watch(folder)
    # First for the state alone: whatever a busy script logs meanwhile is shown together.
    if ready(LEAST_SECONDS, watch):
        return bool(watch.next()["ended"])
    if events.works:
        if events in ready(MOST_SECONDS, watch, events):
            events.clear()
    elif not folders:
        # Nothing can be logged before the state changes.
        ready(MOST_SECONDS, watch)
    return False
