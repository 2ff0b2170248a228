"""What this machine remembers about a server, to send less: `~/.cache/trainmaster/<server>/`. It may be removed."""

from __future__ import annotations

import os
from pathlib import Path

from trainmaster.sdk.backend.remote.address import ServerAddress


def cache_folder(server: ServerAddress) -> Path:
    """The folder of one server. `TRAINMASTER_CACHE` or `XDG_CACHE_HOME` set another place."""
    chosen = os.environ.get("TRAINMASTER_CACHE", "")
    if os.path.isabs(chosen):
        return Path(chosen) / server.folder_name
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "trainmaster" / server.folder_name
