"""The workspaces of one person: those in the user's folder, and those that were opened from elsewhere."""

from __future__ import annotations

from trainmaster.server.workspaces import ServedWorkspace, Workspaces
from trainmaster.shared.folders import home
from trainmaster.shared.own_studio import StudioFolder, read_places


class OwnWorkspaces(Workspaces):
    """Finds workspaces by name. They are created and deleted by other programs while the studio runs."""

    def __init__(self, folder: StudioFolder) -> None:
        super().__init__(home() / "workspaces")
        self._folder = folder

    def announce(self, address: str, networks: tuple[str, ...] = ()) -> None:
        """Nothing: jobs do not use the studio, and the workspaces stay as they are."""

    def get(self, name: str) -> ServedWorkspace:
        """The workspace with this name. Raises HttpError 404."""
        known = self._known.get(name)
        if known is None or not known.folder.identity.exists():
            self.forget(name)
            self._elsewhere = read_places(self._folder)
        return super().get(name)

    def list(self) -> list[ServedWorkspace]:
        """All workspaces, by name."""
        self._elsewhere = read_places(self._folder)
        return super().list()
