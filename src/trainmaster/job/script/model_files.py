"""Compares the files of a model with the list that was made when it was registered.

Standard library only: a service checks its own model, in whatever Python it runs.
"""

import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    Listed = Mapping[str, Any]
    Stamp = tuple[int, int, int]

_BLOCK = 1 << 22


def check_contents(folder: "str | os.PathLike[str]", files: "Sequence[Listed]") -> "list[str]":
    """What is wrong with the model's files below `folder`: one sentence per file, none for an intact model.

    `files` are dicts with `path`, `size` and `digest` (SHA-256), as in the `files` of a model's list. Files that are
    not in the list are ignored: programs put caches beside their models.
    """
    found = []
    for file in files:
        problem = _find_problem(os.path.join(os.fspath(folder), file["path"]), file)
        if problem:
            found.append("{} {}".format(file["path"], problem))
    return found


def fingerprint(folder: "str | os.PathLike[str]", files: "Sequence[Listed]") -> "dict[str, Stamp | None]":
    """Path to size, time of change and inode: takes microseconds per file, and differs after a change.

    Take it when the contents have been checked; a different one later means that a file was written to or replaced.
    """
    return {file["path"]: _stamp(os.path.join(os.fspath(folder), file["path"])) for file in files}


def digest_of(path: "str | os.PathLike[str]") -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while True:
            block = stream.read(_BLOCK)
            if not block:
                return digest.hexdigest()
            digest.update(block)


def _find_problem(path: str, file: "Listed") -> str:
    try:
        size = os.stat(path).st_size
        if size != file["size"]:
            return "has {} bytes instead of {}".format(size, file["size"])
        if digest_of(path) != file["digest"]:
            return "differs from what was registered"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return "cannot be read: {}".format(error.strerror or error)
    return ""


def _stamp(path: str) -> "Stamp | None":
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
