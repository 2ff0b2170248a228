"""The workspaces of a server: folders below its root, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.workspace.files import check_workspace_name, make_workspace
from trainmaster.server.errors import HttpError, refuse
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.identity import read_identity
from trainmaster.shared.run_tokens import write_served


@dataclass(frozen=True)
class ServedWorkspace:
    """One workspace of the server."""

    name: str
    folder: WorkspaceFolder

    def identity(self) -> dict[str, Any]:
        """The facts in workspace.json."""
        return read_identity(self.folder)


class Workspaces:
    """Finds workspaces by name. The folders are the only record: one that was copied into the root is served."""

    def __init__(self, root: Path, elsewhere: Mapping[str, Path] | None = None, database: str = "") -> None:
        self._root = root
        self._database = database
        self._elsewhere = dict(elsewhere or {})
        self._known: dict[str, ServedWorkspace] = {}
        self._address = ""
        self._networks: tuple[str, ...] = ()

    def announce(self, address: str, networks: tuple[str, ...] = ()) -> None:
        """From now on jobs get to know this address of the server, and a token for their own run.

        `networks` are those that notifications may be sent to although they are private.
        """
        self._address = address
        self._networks = networks
        self._known.clear()

    def get(self, name: str) -> ServedWorkspace:
        """The workspace with this name. Raises HttpError 404."""
        known = self._known.get(name)
        if known is not None:
            return known
        try:
            check_workspace_name(name)
        except UserErrorException:
            raise _missing(name) from None
        folder = WorkspaceFolder(self._place(name))
        if not folder.identity.is_file():
            raise _missing(name)
        if self._address:
            write_served(folder, self._address, name, self._networks)
        self._known[name] = ServedWorkspace(name, folder)
        return self._known[name]

    def list(self) -> list[ServedWorkspace]:
        """All workspaces, by name."""
        below = {file.parent.name for file in self._root.glob("*/workspace.json")}
        return [self.get(name) for name in sorted(below | set(self._elsewhere)) if self._exists(name)]

    def create(self, name: str, facts: Mapping[str, Any]) -> ServedWorkspace:
        """Create a workspace. Raises HttpError 409 if it exists."""
        check_workspace_name(name)
        folder = WorkspaceFolder(self._place(name))
        if folder.identity.exists():
            raise refuse(409, f"there is a workspace '{name}' already")
        make_workspace(folder, {"name": name, "location": "local", **facts}, self._database or None)
        return self.get(name)

    def forget(self, name: str) -> None:
        """The workspace was deleted."""
        self._known.pop(name, None)

    def _exists(self, name: str) -> bool:
        try:
            self.get(name)
        except HttpError:
            return False
        return True

    def _place(self, name: str) -> Path:
        return self._elsewhere.get(name) or self._root / name


def _missing(name: str) -> HttpError:
    return refuse(404, f"there is no workspace {name[:60]!r} on this server")
