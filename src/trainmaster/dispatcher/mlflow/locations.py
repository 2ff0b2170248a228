"""Addresses where MLflow's clients keep files: checked when they are given, never opened by us."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError

_WITH_HOST = frozenset({"ftp", "sftp", "hdfs", "viewfs", "http", "https", "mlflow-artifacts", "r2", "b2", "abfss"})
_LONGEST = 2048


def check_location(location: str) -> str:
    """The location, if an experiment may have it. As with MLflow, a folder is one of the server's machine."""
    try:
        parts = urlsplit(location)
    except ValueError:
        raise MlflowError(WRONG, f"Invalid artifact location: '{location[:200]}'") from None
    if parts.fragment or ";" in parts.path.rpartition("/")[2]:
        raise MlflowError(WRONG, "'artifact_location' URL can't include fragments or params.")
    if ".." in _decode(parts.query):
        raise MlflowError(WRONG, "Invalid query string")
    scheme = parts.scheme.lower()
    if scheme in _WITH_HOST and not (scheme == "mlflow-artifacts" and not parts.netloc):
        raise MlflowError(
            WRONG,
            f"'artifact_location' cannot use the '{scheme}' scheme: it addresses a host other than this server. "
            "Leave it out to keep files on this server.",
        )
    if location.startswith("runs:"):
        raise MlflowError(WRONG, f"Artifact location cannot be a runs:/ URI. Given: '{location}'")
    if len(location) > _LONGEST:
        raise MlflowError(
            WRONG,
            "Invalid artifact path length. The length of the artifact path cannot be "
            f"greater than {_LONGEST} characters.",
        )
    return location if scheme else os.path.abspath(location)


def _decode(text: str) -> str:
    for _ in range(10):
        decoded = unquote(text)
        if decoded == text:
            break
        text = decoded
    return text
