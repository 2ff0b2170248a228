"""Chooses the backend of a workspace."""

from __future__ import annotations

from trainmaster.sdk.backend.backend import Backend
from trainmaster.sdk.backend.local.backend import LocalBackend
from trainmaster.shared.folders import WorkspaceFolder


def open_backend(place: WorkspaceFolder) -> Backend:
    """The backend of the workspace in this folder."""
    return LocalBackend(place)
