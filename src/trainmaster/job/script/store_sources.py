"""Which local files an upload takes, and the path each of them gets in the datastore."""

import os
from collections import namedtuple

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import join, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Sequence

    PathText = str | os.PathLike[str]


class Source(namedtuple("Source", ("local", "path"))):
    """The path of a local file, and its path below the target of the upload."""

    __slots__ = ()


class Sources:
    """The files to upload, and a sentence for each thing that is left out."""

    def __init__(self, files: "Sequence[Source]", left_out: "Sequence[str]" = ()) -> None:
        self.files = tuple(files)
        self.left_out = tuple(left_out)


def sources_in(folder: "PathText", except_for: "PathText | None" = None) -> Sources:
    """All files below `folder`, except those below `except_for`: the datastore itself may be in there."""
    folder = os.fspath(folder)
    if not os.path.isdir(folder):
        exists = os.path.exists(folder)
        raise UserErrorException(
            "The folder to upload, {}, {}".format(printable(folder), "is not a folder" if exists else "does not exist"),
            hint="For single files use upload_files." if exists else "Check src_dir.",
        )
    real = os.path.realpath(folder)
    excluded = os.path.realpath(except_for) if except_for else None
    files, left_out = [], []
    for entry, path in _walk(folder, "", real, excluded):
        reason = _reason_against(entry, real)
        if reason:
            left_out.append("Left out {}: {}".format(printable(entry.path), reason))
        else:
            files.append(Source(entry.path, path))
    return Sources(files, left_out)


def sources_of(files: "Sequence[PathText]", relative_root: "PathText | None" = None) -> Sources:
    """The listed `files` in their order, by their paths from `relative_root` (None: the folder they have in common)."""
    if isinstance(files, (str, bytes, os.PathLike)) or not hasattr(files, "__iter__"):
        raise UserErrorException("upload_files takes a list of files", hint="Write [{!r}].".format(files))
    # The path as given, not the one a link leads to: that is the name the user knows. A dict keeps the order.
    paths = list(dict.fromkeys(os.path.abspath(file) for file in files))
    wrong = [path for path in paths if not os.path.isfile(path)]
    if wrong:
        raise UserErrorException(
            "Nothing was uploaded: no such file: {}".format(", ".join(map(printable, wrong[:5]))),
            cause="{} of {} files do not exist, or are not files.".format(len(wrong), len(paths)),
        )
    if not paths:
        return Sources(())
    common = os.path.commonpath([os.path.dirname(path) for path in paths])
    root = os.path.abspath(relative_root) if relative_root else common
    outside = [path for path in paths if not _is_below(path, root)]
    if outside:
        raise UserErrorException("{} is not below relative_root, {}".format(printable(outside[0]), printable(root)))
    return Sources([Source(path, os.path.relpath(path, root)) for path in paths])


def _walk(folder: str, path: str, root: str, excluded: "str | None") -> "Iterator[tuple[os.DirEntry[str], str]]":
    """Everything below `folder` that is not a folder, with its path from `root`."""
    if path and excluded == join(root, path):
        return
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise UserErrorException(
            "The folder {} cannot be read".format(printable(folder)),
            inner_exception=error,
            cause=error.strerror or str(error),
        ) from error
    for entry in entries:
        inner = join(path, entry.name)
        if entry.is_dir(follow_symlinks=False):
            for deeper in _walk(entry.path, inner, root, excluded):
                yield deeper
        else:
            yield entry, inner


def _reason_against(entry: "os.DirEntry[str]", root: str) -> str:
    """Why `entry` is not uploaded; empty when it is."""
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        if not os.path.exists(target):
            return "a link to nothing"
        if os.path.isdir(target):
            return "a link to a folder"
        if not _is_below(target, root):
            return "a link out of the folder"
    # Reading a pipe or a device may never end.
    return "" if entry.is_file() else "not a regular file"


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))
