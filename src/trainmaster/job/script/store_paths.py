"""Paths in a datastore, paths on a node, and names: which of them are allowed."""

import os
import posixpath
import re

from trainmaster.job.errors import UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    PathText = str | os.PathLike[str]

_NAME = re.compile(r"[A-Za-z0-9_]{1,255}")


def check_name(name: object, what: str) -> str:
    """`name` if it can name a `what`: it becomes part of variables and file names."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise UserErrorException(
        "{!r} cannot be the name of a {}".format(name, what), hint="Use 1 to 255 letters, digits and underscores."
    )


def store_path(path: "PathText | None") -> str:
    """`path` relative to the root of a datastore, normalised; the root itself is the empty text.

    >>> store_path("/mnist/./train/")
    'mnist/train'
    """
    text = _as_text(path, "a path in a datastore")
    normal = posixpath.normpath(text.lstrip("/") or ".")
    if _leaves(normal):
        raise UserErrorException(
            "The path {!r} leaves the datastore".format(text),
            hint="Give a path below the datastore's root, without '..'.",
        )
    return "" if normal == "." else normal


def compute_path(path: "PathText | None") -> str:
    """`path` on a node, normalised: absolute, or relative to the working folder; empty for None."""
    text = _as_text(path, "path_on_compute")
    if not text:
        return ""
    normal = posixpath.normpath(text)
    if _leaves(normal):
        raise UserErrorException(
            "path_on_compute {!r} leaves the working folder".format(text),
            hint="Give a path below the working folder, or an absolute one.",
        )
    if normal == ".":
        raise UserErrorException(
            "path_on_compute cannot be the working folder itself", hint="Name a folder in it, such as 'data'."
        )
    # In POSIX two leading slashes may mean something else than one; a user means one.
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


def join(*parts: str) -> str:
    """Paths in a datastore, joined; empty ones are left out."""
    return "/".join(part for part in parts if part)


def printable(path: object) -> str:
    """`path` for a person to read: on one line and printable, whatever bytes the name has."""
    text = str(path).encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _leaves(normal: str) -> bool:
    return normal == ".." or normal.startswith("../")


def _as_text(path: "PathText | None", what: str) -> str:
    if path is None:
        return ""
    text: object = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise UserErrorException("{} must be text, not {}".format(what, type(text).__name__))
    if "\0" in text:
        raise UserErrorException("{} must not contain a null character: {!r}".format(what, text))
    return text
