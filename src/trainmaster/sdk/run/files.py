"""The files of a run: names, reading, copying out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from trainmaster.job.agent import left
from trainmaster.job.errors import AzureMLException, UserErrorException
from trainmaster.sdk.run.masks import mask_of
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import load_spec

# While a run goes, these lie in its working folder and the run's files link to them.
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
            found += [path.relative_to(folder.files).as_posix() for path in paths if _shown(path, roots)]
    return sorted(found)


def left_names(folder: RunFolder) -> list[str]:
    """Files that the script left outside of outputs/ and logs/, sorted: `code/<path in the working folder>`.

    Without what the snapshot brought and nobody changed. A run on a host has no working folder here.
    """
    try:
        snapshot_id = load_spec(folder.spec.read_text(encoding="utf-8")).snapshot_id
    except (OSError, ValueError, AzureMLException):
        # A run without a job.
        return []
    workspace = folder.path.parent.parent
    snapshot = (str(workspace / "snapshots" / f"{snapshot_id}.json"), str(workspace / "blobs"))
    found, _ = left.find(str(folder.code), snapshot, left.first_start(str(folder.node(0))) or 0.0)
    return sorted(f"{folder.code.name}/{name}" for name, _ in found)


def path_of(folder: RunFolder, name: str) -> Path:
    """Where the file `name` lies: among the run's files or, as `code/...`, in the working folder."""
    path = folder.files / name
    is_left = name.startswith(f"{folder.code.name}/") and not os.path.lexists(path)
    return folder.path / name if is_left else path


def _roots(folder: RunFolder) -> tuple[Path, ...]:
    """Where the files of a run may lie: the rest of its folder (specification, keys of its data) is none of them."""
    return folder.files.resolve(), folder.code.resolve()


def _shown(path: Path, roots: Sequence[Path]) -> bool:
    if path.name.startswith(".partial-"):
        return False
    # Neither a pipe nor a link that leads nowhere is a file that could be had.
    return path.is_file() and (not path.is_symlink() or _inside(path, roots))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A name beyond all measure.
        return False


def _inside(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.resolve().is_relative_to(root) for root in roots)


def find(folder: RunFolder, name: str) -> Path:
    """The path of one file; an error that says what there is instead."""
    path = path_of(folder, name)
    if ".." in path.parts or not _is_file(path) or not _inside(path, _roots(folder)):
        known = names(folder)
        shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        raise UserErrorException(
            f"run {folder.path.name} has no file '{name[:300]}'", hint=f"It has: {shown or 'no files'}."
        )
    return path


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
    is_named = not found and not prefix.endswith("/") and _is_file(path_of(folder, prefix))
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
