"""The files of a model against the list that was made when it was registered.

Standard library only: a service looks at its own model, in whatever Python it runs.
"""

import hashlib
import os

_PIECE = 1 << 22


def check_contents(folder, files):
    """What is wrong with the model's files below `folder`: a sentence each, none for a model that is whole.

    `files` are dicts with `path`, `size` and `digest` (SHA-256), as in the `files` of a model's list. Files that are
    not in the list are passed over: programs put caches beside their models.
    """
    found = []
    for file in files:
        problem = _problem(os.path.join(os.fspath(folder), file["path"]), file)
        if problem:
            found.append("{} {}".format(file["path"], problem))
    return found


def fingerprint(folder, files):
    """What tells in microseconds a file whether it was touched since: path to size, time of change and inode.

    Take it when the contents have been checked; another one later means that somebody wrote to the file or replaced it.
    """
    return {file["path"]: _stamp(os.path.join(os.fspath(folder), file["path"])) for file in files}


def digest_of(path):
    """The SHA-256 of a file, in hexadecimal digits."""
    whole = hashlib.sha256()
    with open(path, "rb") as stream:
        while True:
            piece = stream.read(_PIECE)
            if not piece:
                return whole.hexdigest()
            whole.update(piece)


def _problem(path, file):
    try:
        size = os.stat(path).st_size
        if size != file["size"]:
            return "has {} bytes instead of {}".format(size, file["size"])
        if digest_of(path) != file["digest"]:
            return "has other contents than were registered"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return "cannot be read: {}".format(error.strerror or error)
    return ""


def _stamp(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
