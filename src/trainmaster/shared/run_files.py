"""Which files a run has, and where each lies. Nothing outside of the run's folder is one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from trainmaster.job.agent import leftover_files
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import load_spec

# During a run these lie in its working folder; the run's files link to them.
_LIVE = ("outputs", "logs")


def names(folder: RunFolder) -> list[str]:
    """The names of all files, sorted. Links that lead out of the run's folder are left out."""
    found: list[str] = []
    roots = _roots(folder)
    live = [folder.files / name for name in _LIVE if (folder.files / name).is_symlink()]
    # A script may have put a link to anywhere in the place of its outputs.
    tops = [folder.files, *(place for place in live if _inside(place, roots))]
    for top in tops:
        for parent, _, files in os.walk(top):
            paths = (Path(parent, file) for file in files)
            found += [path.relative_to(folder.files).as_posix() for path in paths if _is_visible(path, roots)]
    return sorted(found)


def list_left_files(folder: RunFolder) -> list[str]:
    """Files that the script left outside of outputs/ and logs/, sorted: `code/<path in the working folder>`.

    Without what the snapshot brought and nobody changed. A run on a host has no working folder here.
    """
    try:
        snapshot_id = load_spec(folder.spec.read_text(encoding="utf-8")).snapshot_id
    except (OSError, ValueError, TrainmasterError):
        # A run without a job.
        return []
    workspace = folder.path.parent.parent
    snapshot = (str(workspace / "snapshots" / f"{snapshot_id}.json"), str(workspace / "blobs"))
    started_at = leftover_files.read_start_time(str(folder.node(0))) or 0.0
    found, _ = leftover_files.find(str(folder.code), snapshot, started_at)
    return sorted(f"{folder.code.name}/{name}" for name, _ in found)


def path_of(folder: RunFolder, name: str) -> Path:
    """Where the file `name` lies: among the run's files or, as `code/...`, in the working folder."""
    path = folder.files / name
    is_left = name.startswith(f"{folder.code.name}/") and not os.path.lexists(path)
    return folder.path / name if is_left else path


def _roots(folder: RunFolder) -> tuple[Path, ...]:
    """The folders with the files of a run. The rest of its folder (specification, keys of its data) is not shown."""
    return folder.files.resolve(), folder.code.resolve()


def _is_visible(path: Path, roots: Sequence[Path]) -> bool:
    if path.name.startswith(".partial-"):
        return False
    # A pipe or a broken link cannot be downloaded.
    return path.is_file() and (not path.is_symlink() or _inside(path, roots))


def is_file(path: Path) -> bool:
    """Whether there is a file. A name that is too long is not one."""
    try:
        return path.is_file()
    except OSError:
        return False


def _inside(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.resolve().is_relative_to(root) for root in roots)


def find(folder: RunFolder, name: str) -> Path:
    """The path of one file; an error that says what there is instead."""
    path = path_of(folder, name)
    if ".." in path.parts or not is_file(path) or not _inside(path, _roots(folder)):
        raise UserErrorException(f"run {folder.path.name} has no file '{name[:300]}'", hint=name_some(names(folder)))
    return path


def name_some(known: Sequence[str]) -> str:
    """A sentence that says which files a run has.

    >>> name_some(["outputs/model.pt"]), name_some([])
    ('It has: outputs/model.pt.', 'It has: no files.')
    """
    shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    return f"It has: {shown or 'no files'}."
