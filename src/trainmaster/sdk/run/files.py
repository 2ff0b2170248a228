"""Chooses, reads and copies the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import RunFiles

_LOGS = "azureml-logs/"
# The working folder of the script.
_CODE = "code"


def read_text(files: RunFiles, name: str) -> str:
    """The text of one file; bytes that are not UTF-8 become replacement characters."""
    return files.read(name).decode("utf-8", "replace")


def names_with_prefix(files: RunFiles, prefix: str) -> list[str]:
    """The names of the run's files that begin with `prefix`; with `code/...` those left in the working folder."""
    wanted = [name for name in files.names() if name.startswith(prefix)]
    if prefix.partition("/")[0] != _CODE:
        return wanted
    found = [name for name in files.list_left_names() if name.startswith(prefix)]
    # Also a file of the snapshot, if `prefix` is its full name.
    is_named = not found and not prefix.endswith("/") and files.has(prefix)
    return [*wanted, *([prefix] if is_named else found)]


def download_logs(files: RunFiles, destination: Path) -> list[str]:
    """Copies what the system and the script logged."""
    return [
        str(copy_file(files, name, destination / name)) for name in files.names() if name.startswith((_LOGS, "logs/"))
    ]


def log_names(files: RunFiles) -> list[str]:
    """The logs that people follow, in v1's order."""
    return [name for name in files.names() if name.startswith(_LOGS)]


def copy_file(files: RunFiles, name: str, target: Path) -> Path:
    """Copies one file to the path `target`, and returns that."""
    files.copy(name, target)
    return target
