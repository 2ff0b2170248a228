"""Turns the output of a package tool into a hint for the user. Pure functions."""

from __future__ import annotations

_UNREACHABLE = (
    "error sending request",
    "failed to fetch",
    "timed out",
    "operation timed out",
    "connection refused",
    "dns error",
    "connection reset",
    "could not connect",
)
_OTHER_PYTHON = (
    "matching python",
    "python abi tag",
    "python implementation",
    "does not satisfy python",
    "the current python version",
    "requires-python",
)
_OTHER_PLATFORM = ("platform tag", "matching platform")


def is_about_python(said: str) -> bool:
    """Whether the error says that packages have no release or build for this Python.

    >>> is_about_python("tensorflow==1.15.0 has no wheels with a matching Python version tag")
    True
    """
    return any(words in said.lower() for words in _OTHER_PYTHON)


def hint_for(said: str) -> str:
    """The most likely fix.

    >>> hint_for("Because tinypackage was not found in the package registry")
    "Check the spelling of the package, and whether pip's configured sources have it."
    >>> hint_for("Packages were unavailable because the network was disabled.")
    'uv is configured to stay offline: unset UV_OFFLINE, or use releases that are in its cache.'
    >>> hint_for("Because there is no version of attrs==99 and you require attrs==99, ... are unsatisfiable.")
    "Pip's configured sources do not have this release: choose another version."
    >>> hint_for("Because only torch<=2.15.0 is available and you require torch==9.9.*, ... are unsatisfiable.")
    "Pip's configured sources do not have this release: choose another version."
    """
    text = said.lower()
    if "no space left" in text or "os error 28" in text or "disk quota" in text:
        return "Free disk space ('trainmaster env prune' removes unused environments), then submit again."
    if any(words in text for words in ("401 unauthorized", "403 forbidden", "407 proxy")):
        return "The package index denied access: check user and password in pip's index-url, your keyring or proxy."
    if "network was disabled" in text or "network connectivity is disabled" in text:
        return "uv is configured to stay offline: unset UV_OFFLINE, or use releases that are in its cache."
    if any(words in text for words in _UNREACHABLE):
        return (
            "The package index cannot be reached or does not respond. Check pip's index-url and the proxy; "
            "UV_HTTP_TIMEOUT sets the timeout in seconds (default 30)."
        )
    if "exclude-newer" in text or "exclude_newer" in text:
        return "The release is newer than exclude_newer allows: use an older release or a later date."
    if is_about_python(said):
        return "The package has no release for this Python: choose another python_version or another release."
    if any(words in text for words in _OTHER_PLATFORM):
        return "The package has no build for this machine: choose another release."
    if "was not found in" in text:
        return "Check the spelling of the package, and whether pip's configured sources have it."
    if "failed to build" in text:
        return "The package is compiled from source: see the log for what is missing, or choose a release with wheels."
    if ("there is no version of" in text or "is available and you require" in text) and "depends on" not in text:
        return "Pip's configured sources do not have this release: choose another version."
    if "unsatisfiable" in text or "no solution found" in text:
        return "The requested releases conflict with each other: relax one of the versions."
    return "Check the names and versions of the packages, and pip's configured package sources."
