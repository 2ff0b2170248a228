"""Reads and copies the files of a run; secrets are hidden in its logs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.local.masks import mask_of
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.run_files import find, is_file, list_left_files, names, path_of


def read_text(folder: RunFolder, name: str) -> str:
    """The text of one file; bytes that are not UTF-8 become replacement characters."""
    found = find(folder, name).read_bytes()
    return (mask_of(folder).hide(found) if _is_log(name) else found).decode("utf-8", "replace")


def names_with_prefix(folder: RunFolder, prefix: str) -> list[str]:
    """The names of the run's files that begin with `prefix`; with `code/...` those left in the working folder."""
    wanted = [name for name in names(folder) if name.startswith(prefix)]
    if prefix.partition("/")[0] != folder.code.name:
        return wanted
    found = [name for name in list_left_files(folder) if name.startswith(prefix)]
    # Also a file of the snapshot, if `prefix` is its full name.
    is_named = not found and not prefix.endswith("/") and is_file(path_of(folder, prefix))
    return [*wanted, *([prefix] if is_named else found)]


def download_all(folder: RunFolder, prefix: str, output: str | os.PathLike[str]) -> list[Path]:
    """Copies all files whose names begin with `prefix`, below `output`."""
    return [copy_file(folder, name, Path(output) / name) for name in names_with_prefix(folder, prefix)]


def download_logs(folder: RunFolder, destination: Path) -> list[str]:
    """Copies what the system and the script logged."""
    return [
        str(copy_file(folder, name, destination / name))
        for name in names(folder)
        if name.startswith(("azureml-logs/", "logs/"))
    ]


def log_names(folder: RunFolder) -> list[str]:
    """The logs that people follow, in v1's order."""
    return [name for name in names(folder) if name.startswith("azureml-logs/")]


def _is_log(name: str) -> bool:
    return name.startswith("azureml-logs/")


def copy_file(folder: RunFolder, name: str, target: Path) -> Path:
    """Copies one file to the path `target`, with secrets hidden if it is a log."""
    source = find(folder, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if _is_log(name):
            # Asked after copying: the dispatcher knows each secret before the script can print it.
            mask_of(folder).hide_in_file(target)
    except (OSError, shutil.SameFileError) as error:
        raise UserErrorException(f"{source.name} cannot be copied to {target}", cause=str(error)) from None
    return target
