"""Addresses of artifacts: `mlflow-artifacts:/<experiment>/<run>/artifacts` and others. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError

SCHEME = "mlflow-artifacts:"
ARTIFACTS = "artifacts"
_NOT_RUNS = ("models", "traces")
"""In the place of a run's id in an address: the folders of logged models and of traces."""
_MOST_DECODINGS = 10
_MODEL_ID = re.compile(r"m-[0-9a-f]{32}")


@dataclass(frozen=True)
class RunPart:
    """A path that may be among the files of a run: the id, and the parts before and behind `<id>/artifacts`."""

    run_id: str
    root: tuple[str, ...]
    """The path of all its files, with `artifacts`."""
    rest: tuple[str, ...]


def make_location(experiment_id: str, location: str = "") -> str:
    """Where the files of an experiment are: what its client said, or a folder of the server."""
    return location or f"{SCHEME}/{experiment_id}"


def make_run_uri(experiment_id: str, run_id: str, location: str = "") -> str:
    """The address of a run's files.

    >>> make_run_uri("3", "f00")
    'mlflow-artifacts:/3/f00/artifacts'
    """
    return _append(make_location(experiment_id, location), f"{run_id}/{ARTIFACTS}")


def make_model_uri(experiment_id: str, model_id: str, location: str = "") -> str:
    """The address of a logged model's files."""
    return _append(make_location(experiment_id, location), f"models/{model_id}/{ARTIFACTS}")


def _append(location: str, path: str) -> str:
    """The address of something below a location, whose query stays behind it."""
    whole, mark, query = location.partition("?") if "://" in location else (location, "", "")
    if whole.startswith(f"{SCHEME}///"):
        whole = SCHEME + whole[len(SCHEME) + 2 :]
    return f"{whole.rstrip('/')}/{path}{mark}{query}"


def split_path(path: str) -> tuple[str, ...]:
    """The parts of a path that a client gave; none for the top. Raises MlflowError for one that leads elsewhere.

    >>> split_path("a/./b//c.txt")
    ('a', 'b', 'c.txt')
    """
    if any(ord(sign) < 32 or sign == "\x7f" for sign in path):
        raise _invalid()
    decoded = path
    for _ in range(_MOST_DECODINGS):
        _check(decoded)
        further = unquote(decoded)
        if further == decoded:
            return tuple(part for part in path.split("/") if part not in ("", "."))
        decoded = further
    raise _invalid()


def _check(path: str) -> None:
    has_sign = any(sign in "\\#" for sign in path)
    if has_sign or path.startswith("/") or path.lower().startswith("file:") or ".." in path.split("/"):
        raise _invalid()
    if len(path) > 1 and path[1] == ":" and path[0].isalpha():
        # A drive of Windows.
        raise _invalid()


def _invalid() -> MlflowError:
    return MlflowError(WRONG, "Invalid path")


def read_uri(uri: str) -> tuple[str, ...] | None:
    """The path in an address of this server; None for any other address.

    >>> read_uri("mlflow-artifacts:/3/f00/artifacts"), read_uri("s3://bucket/3")
    (('3', 'f00', 'artifacts'), None)
    """
    if not uri.startswith(SCHEME):
        return None
    rest = uri[len(SCHEME) :]
    if rest.startswith("//"):
        # With the name of a server, which is this one: its clients send the request there.
        rest = rest[2:].partition("/")[2]
    return split_path(rest.lstrip("/"))


def find_run_part(parts: tuple[str, ...]) -> RunPart | None:
    """The run whose files a path may be among, by its form alone.

    >>> find_run_part(("3", "f00", "artifacts", "a.txt"))
    RunPart(run_id='f00', root=('3', 'f00', 'artifacts'), rest=('a.txt',))
    """
    at = parts.index(ARTIFACTS, 1) if ARTIFACTS in parts[1:] else 0
    if not at or (at > 1 and parts[at - 2] in _NOT_RUNS):
        return None
    return RunPart(parts[at - 1], parts[: at + 1], parts[at + 1 :])


def find_model_part(parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """The logged model whose files a path is among, and the path there, by its form alone.

    >>> find_model_part(("3", "models", "m-" + "0" * 32, "artifacts", "MLmodel"))
    ('m-00000000000000000000000000000000', ('MLmodel',))
    """
    for at, part in enumerate(parts[:-1]):
        if _MODEL_ID.fullmatch(part) and parts[at - 1 : at] == ("models",) and parts[at + 1] == ARTIFACTS:
            return part, parts[at + 2 :]
    return None
