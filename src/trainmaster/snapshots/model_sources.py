"""Which files a model is made of: a path of this machine, or a name among the files of a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainmaster.job.errors import ModelPathNotFoundException, WebserviceException
from trainmaster.job.script.files import walk_files
from trainmaster.job.script.values import is_text
from trainmaster.shared import run_files
from trainmaster.shared.folders import RunFolder

_SHOWN = 20


@dataclass(frozen=True)
class Sources:
    """The files of a model: the entry, and path in the model to where the file is."""

    entry: str
    files: dict[str, Path]


def files_at(path: str | os.PathLike[str], child_paths: Sequence[str | os.PathLike[str]] | None = None) -> Sources:
    """A file, or a folder with all that is in it; with `child_paths` only those parts of the folder."""
    try:
        given = Path(path)
        is_file, is_folder = given.is_file(), given.is_dir()
    except (OSError, TypeError, ValueError) as error:
        raise ModelPathNotFoundException(f"{str(path)[:300]!r} is no path", cause=str(error)) from None
    if is_file:
        return Sources(_entry(given.name), {given.name: given})
    if not is_folder:
        raise _no_path(given)
    # What `.` and `..` are called shows only in the whole path.
    root = Path(os.path.abspath(given))
    entry = _entry(root.name or "model")
    wanted = [_child(root, child) for child in child_paths] if child_paths is not None else [root]
    names = {os.path.relpath(each, root) for place in wanted for each in _list_files(place)}
    if not names:
        raise ModelPathNotFoundException(f"the folder {given} has no files", hint="A model needs at least one file.")
    return Sources(entry, {f"{entry}/{name}": root / name for name in names})


def _entry(name: str) -> str:
    if not is_text(name):
        raise WebserviceException(f"{name!r} has characters that cannot be stored", hint="Give it another name.")
    return name


def _child(root: Path, child: str | os.PathLike[str]) -> Path:
    """Find a child path, which in v1 was relative to the folder or started with it."""
    for place in (root / child, Path(os.path.abspath(child))):
        if place.exists() and Path(os.path.abspath(place)).is_relative_to(root):
            return Path(os.path.abspath(place))
    raise ModelPathNotFoundException(
        f"child path '{child}' is not in {root}", cause=f"The folder has: {_shorten(sorted(os.listdir(root)))}."
    )


def _list_files(place: Path) -> list[str]:
    return [str(place)] if place.is_file() else list(walk_files(str(place)))


def files_of_run(folder: RunFolder, path: str) -> Sources:
    """Choose a file of a run, a folder among its files, or all files whose names start with `path`."""
    names = run_files.names(folder)
    entry, chosen = choose(names, path, folder.path.name)
    return Sources(entry, {inside: folder.files / name for inside, name in chosen.items()})


def choose(names: Sequence[str], path: str, run_id: str) -> tuple[str, dict[str, str]]:
    """Choose files by path; return the model's entry, and a map from paths in the model to file names.

    >>> choose(["outputs/a.pkl", "outputs/m/b"], "./outputs/a.pkl", "r")
    ('a.pkl', {'a.pkl': 'outputs/a.pkl'})
    >>> choose(["outputs/a.pkl", "outputs/m/b"], "outputs/m/", "r")
    ('m', {'m/b': 'outputs/m/b'})
    >>> choose(["outputs/m/ckpt.index", "outputs/m/ckpt.data"], "outputs/m/ckpt", "r")
    ('m', {'m/ckpt.index': 'outputs/m/ckpt.index', 'm/ckpt.data': 'outputs/m/ckpt.data'})
    """
    wanted = str(PurePosixPath(path)) if path else ""
    if wanted in names:
        entry = PurePosixPath(wanted).name
        return entry, {entry: wanted}
    inside = [name for name in names if wanted and name.startswith(f"{wanted}/")]
    above = PurePosixPath(wanted)
    if not inside and not path.endswith("/"):
        inside = [name for name in names if wanted and name.startswith(wanted)]
        above = above.parent
    if not inside:
        raise ModelPathNotFoundException(
            f"run {run_id} has no file or folder '{path[:300]}'",
            cause=f"Its files are: {_shorten(names) or 'none'}.",
            hint="A run keeps what its script writes to ./outputs and what run.upload_file() or upload_folder() add.",
        )
    entry = above.name or "model"
    skipped = len(above.parts)
    return entry, {"/".join((entry, *PurePosixPath(name).parts[skipped:])): name for name in inside}


def _no_path(path: Path) -> WebserviceException:
    near = path.parent if path.parent.is_dir() else Path.cwd()
    return ModelPathNotFoundException(
        f"there is no file or folder {str(path)[:300]!r}",
        cause=f"{near.absolute()} contains: {_shorten(sorted(os.listdir(near))) or 'nothing'}.",
        hint="For files of a run use run.register_model(model_name, model_path).",
    )


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
