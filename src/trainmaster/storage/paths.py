"""Paths inside a store, places on a node, and names: what may be written for each."""

from __future__ import annotations

import os
import posixpath
import re

from trainmaster.job.errors import UserErrorException

_NAME = re.compile(r"[A-Za-z0-9_]{1,255}")


def checked_name(name: object, what: str) -> str:
    """`name` if it can name a `what`: it becomes part of variables and file names."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise UserErrorException(
        f"{name!r} cannot be the name of a {what}",
        hint="Use 1 to 255 letters, digits and underscores.",
    )


def store_path(path: str | os.PathLike[str] | None) -> str:
    """`path` relative to the root of a store, normalised; the root itself is the empty text.

    >>> store_path("/mnist/./train/")
    'mnist/train'
    """
    text = _text(path, "a path in a datastore")
    normal = posixpath.normpath(text.lstrip("/") or ".")
    if _leaves(normal):
        raise UserErrorException(
            f"The path {text!r} leaves the datastore",
            hint="Give a path below the datastore's root, without '..'.",
        )
    return "" if normal == "." else normal


def compute_path(path: str | os.PathLike[str] | None) -> str:
    """`path` on a node, normalised: absolute, or relative to the working folder; empty when none is given."""
    text = _text(path, "path_on_compute")
    if not text:
        return ""
    normal = posixpath.normpath(text)
    if _leaves(normal):
        raise UserErrorException(
            f"path_on_compute {text!r} leaves the working folder",
            hint="Give a path below the working folder, or an absolute one.",
        )
    if normal == ".":
        raise UserErrorException(
            "path_on_compute cannot be the working folder itself", hint="Name a folder in it, such as 'data'."
        )
    # POSIX keeps two leading slashes apart; nobody who writes them means that.
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


def join(*parts: str) -> str:
    """Store paths put together, the empty ones left out."""
    return "/".join(part for part in parts if part)


def shown(path: object) -> str:
    """`path` for a person to read: on one line and printable, whatever bytes the name has."""
    text = str(path).encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _leaves(normal: str) -> bool:
    return normal == ".." or normal.startswith("../")


def _text(path: str | os.PathLike[str] | None, what: str) -> str:
    if path is None:
        return ""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise UserErrorException(f"{what} must be text, not {type(text).__name__}")
    if "\0" in text:
        raise UserErrorException(f"{what} must not have a null character: {text!r}")
    return text
