"""A workspace in a folder of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.sdk.backend.backend import JOURNALS, LOGS, RunNews
from trainmaster.sdk.backend.local.connection import LocalConnection
from trainmaster.sdk.backend.local.contents import LocalContents
from trainmaster.sdk.workspace.files import change_identity, read_identity
from trainmaster.shared.folders import RunFolder, WorkspaceFolder

if TYPE_CHECKING:
    from trainmaster.sdk.backend.local.run_files import LocalRunFiles


class LocalBackend:
    """The workspace in `folder`."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self.folder = folder
        self.connection = LocalConnection(folder)
        self.contents = LocalContents(folder)

    @property
    def address(self) -> str:
        """The address of the folder."""
        return self.folder.path.as_uri()

    def run_files(self, run_id: str) -> LocalRunFiles:
        """The files of a run."""
        from trainmaster.sdk.backend.local.run_files import LocalRunFiles

        return LocalRunFiles(self.folder.run(run_id))

    def follow_run(
        self, run_id: str, kinds: Sequence[str] = (LOGS,), *, hold: float = 0.0, every: float | None = None
    ) -> Iterator[RunNews | None]:
        """Yields each new state of a run, and None when files of these kinds may have grown."""
        from trainmaster.sdk.backend.local.following import follow_run

        folders = [_folder_of(self.folder.run(run_id), kind) for kind in kinds]
        return follow_run(self.folder, run_id, folders, hold=hold, every=every)

    def long_poll(self, op: str, args: Mapping[str, Any], end: float | None) -> Iterator[dict[str, Any]]:
        """The answers of an operation that waits for a change and is asked again and again."""
        from trainmaster.sdk.backend.local.following import LongPoll

        with LongPoll(self.folder, op, args, end) as poll:
            while True:
                yield poll.next()

    def identity(self) -> dict[str, Any]:
        """The facts in workspace.json."""
        return read_identity(self.folder)

    def change_identity(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes facts in workspace.json, and returns all of them."""
        return change_identity(self.folder, changes)

    def remove(self, keep_data: bool) -> None:
        """Removes the workspace, but no other files in its folder."""
        from trainmaster.sdk.backend.local.removal import remove_workspace

        remove_workspace(self.folder, self.connection, keep_data)


def _folder_of(run: RunFolder, kind: str) -> Path:
    return {LOGS: run.logs, JOURNALS: run.journals}[kind]
