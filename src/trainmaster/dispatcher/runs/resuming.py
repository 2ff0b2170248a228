"""The working folder of a run that continues another one: a copy of the folder that the other one left."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

from trainmaster.dispatcher.runs.reruns import RESUMED
from trainmaster.job.agent.layout import Manifest, lay_out, read_manifest
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import RunRecord
from trainmaster.storage.staging import read_plan

_PIECE = 1 << 30
_KEPT = ("outputs", "logs")
"""Folders that are moved to the files of a run when it ends."""


def find_resumed(record: RunRecord) -> str:
    """The id of the run that this one continues; empty if it begins anew."""
    return record.properties.get(RESUMED, "")


def copy_working_folder(workspace: WorkspaceFolder, origin_id: str, run: RunRecord) -> None:
    """Create the working folder of `run` as `origin_id` left its own, with its outputs and logs. May be repeated."""
    origin, new = workspace.run(origin_id), workspace.run(run.id)
    if new.code.exists():
        return
    if not origin.path.is_dir():
        raise UserErrorException(
            f"run {run.id} cannot continue run {origin_id}, whose files were deleted", hint="Use 'rerun' instead."
        )
    partial = new.path / "code.resuming"
    shutil.rmtree(partial, ignore_errors=True)
    new.path.mkdir(parents=True, exist_ok=True)
    manifest = workspace.snapshot(run.snapshot_id)
    if beneath.is_folder(origin.path, origin.code.name) and _has_code(origin.code, read_manifest(manifest)):
        _copy_tree(origin.code, partial, _list_links(origin))
    else:
        # It was cleaned, never created, or on another machine: outputs and code are still there.
        lay_out(manifest, workspace.blobs, partial)
    for name in _KEPT:
        if beneath.is_folder(origin.path, f"files/{name}"):
            _copy_tree(origin.files / name, partial / name)
    partial.rename(new.code)


def _has_code(folder: Path, manifest: Manifest) -> bool:
    """Whether the script ran in this folder. What comes back from other machines is only in the kept folders."""
    paths = [file.path for file in manifest.files if file.path.split("/")[0] not in _KEPT]
    return not paths or any(os.path.lexists(folder / path) for path in paths)


def _list_links(origin: RunFolder) -> frozenset[str]:
    """The links to data that were made for that run; the new one gets its own."""
    try:
        plan = read_plan(origin.data_plan) if origin.data_plan.exists() else None
    except TrainmasterError:
        plan = None
    return frozenset(link.path for link in plan.links) if plan else frozenset()


def _copy_tree(source: Path, target: Path, left_out: Collection[str] = ()) -> None:
    def ignore(folder: str, names: list[str]) -> list[str]:
        place = os.path.relpath(folder, source)
        return [name for name in names if _is_left_out(folder, name, os.path.normpath(f"{place}/{name}"), left_out)]

    shutil.copytree(source, target, symlinks=True, ignore=ignore, copy_function=_copy_file, dirs_exist_ok=True)


def _is_left_out(folder: str, name: str, path: str, left_out: Collection[str]) -> bool:
    mode = os.lstat(f"{folder}/{name}").st_mode
    # Sockets and pipes of processes that are gone.
    return path in left_out or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _copy_file(source: str, target: str) -> None:
    """Copies a file. The kernel shares its blocks on file systems that can."""
    with open(source, "rb") as old, open(target, "wb") as new:
        try:
            while os.copy_file_range(old.fileno(), new.fileno(), _PIECE):
                pass
        except OSError:
            old.seek(0)
            new.seek(0)
            new.truncate()
            shutil.copyfileobj(old, new)
    shutil.copystat(source, target)
