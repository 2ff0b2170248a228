"""Fetches files from web servers with the standard library."""

import os

from trainmaster.job.errors import DatastoreException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SECONDS = 60
_BLOCK = 1 << 20


def size_of(url: str) -> int:
    """How many bytes the file at `url` has, 0 if its server does not say; an error if it cannot be read."""
    with _open(url, "HEAD") as answer:
        length = answer.headers.get("Content-Length") or ""
        return int(length) if length.isdigit() else 0


def fetch(url: str, path: str) -> None:
    """Copies the file at `url` to `path`."""
    with _open(url, "GET") as answer:
        expected = answer.headers.get("Content-Length") or ""
        try:
            with open(path, "wb") as file:
                while True:
                    block = answer.read(_BLOCK)
                    if not block:
                        break
                    file.write(block)
        except (OSError, ValueError) as error:
            raise _error(url, error) from error
    if expected.isdigit() and os.path.getsize(path) != int(expected):
        raise DatastoreException(
            "{} cannot be read".format(_without_key(url)),
            cause="It ended after {} of {} bytes.".format(os.path.getsize(path), expected),
            hint="Try again: the connection was lost.",
        )


def _open(url: str, method: str) -> "Any":
    # Loaded here: it takes longer than the rest of the runtime.
    from urllib.request import Request, urlopen

    try:
        return urlopen(Request(url, method=method), timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise _error(url, error) from error


def _error(url: str, error: "Exception") -> "DatastoreException":
    cause = getattr(error, "reason", None) or error
    code = getattr(error, "code", None)
    shown = "{} {}".format(code, cause) if code else str(cause)
    return DatastoreException(
        "{} cannot be read".format(_without_key(url)),
        inner_exception=error,
        cause=shown,
        hint="Check the address." if code == 404 else "Check the address and the network.",
    )


def _without_key(url: str) -> str:
    """The address without what follows the path: that may be a key."""
    return url.partition("?")[0]
