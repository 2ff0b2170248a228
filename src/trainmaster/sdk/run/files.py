"""Reading the files of a run and copying them out, with secrets hidden in its logs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.run.masks import mask_of
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.run_files import find, is_file, left_names, names, path_of


def read_text(folder: RunFolder, name: str) -> str:
    """The text of one file; bytes that are not UTF-8 are shown as such."""
    found = find(folder, name).read_bytes()
    return (mask_of(folder).hide(found) if _is_log(name) else found).decode("utf-8", "replace")


def download(folder: RunFolder, name: str, output: str | os.PathLike[str] | None) -> Path:
    """Copies one file to `output`: a file's path, or a folder that receives it."""
    source = find(folder, name)
    target = Path(output) if output is not None else Path(source.name)
    if target.is_dir() or (output is not None and os.fspath(output).endswith(os.sep)):
        target = target / source.name
    return _copy(folder, name, target)


def beginning_with(folder: RunFolder, prefix: str) -> list[str]:
    """The names of the run's files that begin with `prefix`; with `code/...` of those that were left."""
    wanted = [name for name in names(folder) if name.startswith(prefix)]
    if prefix.partition("/")[0] != folder.code.name:
        return wanted
    found = [name for name in left_names(folder) if name.startswith(prefix)]
    # A file of the snapshot too, if it is named in full.
    is_named = not found and not prefix.endswith("/") and is_file(path_of(folder, prefix))
    return [*wanted, *([prefix] if is_named else found)]


def download_all(
    folder: RunFolder,
    prefix: str | None,
    output: str | os.PathLike[str] | None,
    paths: Sequence[str] | None,
    append_prefix: bool,
) -> list[Path]:
    """Copies all files whose names begin with `prefix`, below `output`."""
    wanted = beginning_with(folder, prefix or "")
    if paths is not None:
        if len(paths) != len(wanted):
            raise UserErrorException(
                f"output_paths has {len(paths)} paths for {len(wanted)} files",
                hint="Give one path for each file.",
            )
        targets = [Path(output or ".") / path for path in paths]
    else:
        shorten = not append_prefix and bool(prefix)
        targets = [Path(output or ".") / (_without(name, str(prefix)) if shorten else name) for name in wanted]
    return [_copy(folder, name, target) for name, target in zip(wanted, targets, strict=True)]


def _without(name: str, prefix: str) -> str:
    return name[len(prefix) :].lstrip("/") or Path(name).name


def download_logs(folder: RunFolder, destination: Path) -> list[str]:
    """Copies what the system and the script logged."""
    return [
        str(_copy(folder, name, destination / name))
        for name in names(folder)
        if name.startswith(("azureml-logs/", "logs/"))
    ]


def log_names(folder: RunFolder) -> list[str]:
    """The logs that people follow, in v1's order."""
    return [name for name in names(folder) if name.startswith("azureml-logs/")]


def _is_log(name: str) -> bool:
    return name.startswith("azureml-logs/")


def _copy(folder: RunFolder, name: str, target: Path) -> Path:
    source = find(folder, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if _is_log(name):
            # Asked after copying: whatever was printed before now had been given to the script before.
            mask_of(folder).hide_in_file(target)
    except (OSError, shutil.SameFileError) as error:
        raise UserErrorException(f"{source.name} cannot be copied to {target}", cause=str(error)) from None
    return target
