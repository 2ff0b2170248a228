"""Files of the web, fetched with the standard library."""

import os

from trainmaster.job.errors import DatastoreException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SECONDS = 60
_PIECE = 1 << 20


def size_of(url: str) -> int:
    """How many bytes the file at `url` has, 0 where its server does not say; an error if it cannot be had."""
    with _opened(url, "HEAD") as answer:
        length = answer.headers.get("Content-Length") or ""
        return int(length) if length.isdigit() else 0


def fetch(url: str, path: str) -> None:
    """Copies the file at `url` to `path`."""
    with _opened(url, "GET") as answer:
        expected = answer.headers.get("Content-Length") or ""
        try:
            with open(path, "wb") as file:
                while True:
                    piece = answer.read(_PIECE)
                    if not piece:
                        break
                    file.write(piece)
        except (OSError, ValueError) as error:
            raise _failed(url, error) from error
    if expected.isdigit() and os.path.getsize(path) != int(expected):
        raise DatastoreException(
            "{} cannot be read".format(_shown(url)),
            cause="It ended after {} of {} bytes.".format(os.path.getsize(path), expected),
            hint="Try again: the connection was cut.",
        )


def _opened(url: str, method: str) -> "Any":
    # Loaded here: it takes longer than all of the runtime.
    from urllib.request import Request, urlopen

    try:
        return urlopen(Request(url, method=method), timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise _failed(url, error) from error


def _failed(url: str, error: "Exception") -> "DatastoreException":
    cause = getattr(error, "reason", None) or error
    code = getattr(error, "code", None)
    shown = "{} {}".format(code, cause) if code else str(cause)
    return DatastoreException(
        "{} cannot be read".format(_shown(url)),
        inner_exception=error,
        cause=shown,
        hint="Check the address." if code == 404 else "Check the address and the network.",
    )


def _shown(url: str) -> str:
    """Without what follows the path: it may be a key."""
    return url.partition("?")[0]
