"""The address that a client of MLflow gives as the `source` of a version: checked here, before anything else.

This field was the way into servers of MLflow again and again: paths with `..`, files of the server, addresses of other
machines, characters that are decoded later. So only three forms are accepted, all of which are addresses of this
workspace, and nothing that could mean something else to one of those who read it: no query, no fragment, no host, no
parts that lead upwards, also if they are encoded. Repeated slashes in a path of files count as one. What is accepted
names a run, a logged model or a version, whose files are looked up by that name; it is never opened as a path or
fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, unquote_plus

from trainmaster.dispatcher.mlflow.errors import INTERNAL, WRONG, MlflowError
from trainmaster.shared.model_addresses import read_parts

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FOREIGN_FILE = re.compile(r"file://(?!localhost(?:/|$))[^/]", re.IGNORECASE)
_ID = re.compile(r"[A-Za-z0-9][\w-]{0,255}", re.ASCII)
_SLASHES = re.compile("/{2,}")
_MOST_DECODINGS = 10
_LONGEST = 4096
_ARTIFACTS = "artifacts"


@dataclass(frozen=True)
class RunSource:
    """Files of a run."""

    run_id: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class LoggedModelSource:
    """A logged model, or some of its files."""

    model_id: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class VersionSource:
    """A version of a registered model: by its number, its alias, its stage, or the newest one."""

    name: str
    version: int | None = None
    stage: str = ""
    alias: str = ""


@dataclass(frozen=True)
class ArtifactSource:
    """A path among the artifacts of this server: of a run or of a logged model, which the request has to name."""

    path: tuple[str, ...]


Source = RunSource | LoggedModelSource | VersionSource | ArtifactSource


def parse_source(source: str) -> Source:
    """What an address names. Raises MlflowError for everything that is not an address of this workspace.

    >>> parse_source("runs:/f00/model"), parse_source("models:/mnist@champion")
    (RunSource(run_id='f00', path=('model',)), VersionSource(name='mnist', version=None, stage='', alias='champion'))
    """
    scheme = _SCHEME.match(source)
    if scheme is None or scheme[1].lower() == "file":
        raise _foreign_file(source) if _FOREIGN_FILE.match(source) else _local_source(source)
    _check_characters(source)
    match scheme[1]:
        case "runs":
            return _read_run(source, source[scheme.end() :])
        case "models":
            return _read_model(source, source[scheme.end() :])
        case "mlflow-artifacts":
            return _read_artifact(source, source[scheme.end() :])
        case _:
            raise MlflowError(
                WRONG,
                f"Invalid model version source: '{source[:1000]}'. This server keeps models itself: a source is "
                "a runs:/, models:/ or mlflow-artifacts:/ address of this workspace.",
            )


def _read_run(source: str, rest: str) -> RunSource:
    parts = _split(source, rest, "run_id")
    if not parts:
        raise _unclear_source(source)
    if not _ID.fullmatch(parts[0]):
        raise MlflowError(
            WRONG,
            f"Not a proper runs:/ URI: {source[:1000]}. Runs URIs must be of the form "
            "'runs:/<run_id>/run-relative/path/to/artifact'",
        )
    return RunSource(parts[0], parts[1:])


def _read_model(source: str, rest: str) -> LoggedModelSource | VersionSource:
    if not rest or "//" in rest:
        raise wrong_source(source, "model_id")
    parts = _split(source, rest, "model_id")
    match parts:
        case [name, suffix] if suffix.isascii() and suffix.isdecimal() and len(suffix) < 10:
            return VersionSource(name, int(suffix))
        case [name, suffix] if suffix.lower() == "latest":
            return VersionSource(name)
        case [name, suffix]:
            return VersionSource(name, stage=suffix)
        case [both] if "@" in both and both.rpartition("@")[2]:
            name, _, alias = both.rpartition("@")
            return VersionSource(name, alias=alias)
        case [model_id] if _ID.fullmatch(model_id):
            return LoggedModelSource(model_id)
        case _:
            raise wrong_source(source, "model_id")


def _read_artifact(source: str, rest: str) -> Source:
    parts = _split(source, rest, "run_id")
    if not parts:
        raise wrong_source(source, "run_id")
    version = read_parts(parts)
    if version is not None and not version[2]:
        return VersionSource(version[0], version[1])
    return ArtifactSource(parts)


def _split(source: str, rest: str, argument: str) -> tuple[str, ...]:
    """The parts of a path without a host."""
    if not rest.startswith("/"):
        raise _unclear_source(source)
    if rest.startswith("//"):
        # What follows is the name of a host, and this workspace has none.
        raise wrong_source(source, argument)
    parts = tuple(part for part in rest.split("/") if part)
    if "." in parts:
        raise _unclear_source(source)
    return parts


def join_slashes(source: str) -> str:
    """An accepted source in the form that all clients read alike.

    >>> join_slashes("runs:/f00/model//part/")
    'runs:/f00/model/part/'
    """
    return _SLASHES.sub("/", source)


def _check_characters(source: str) -> None:
    """Refuse what is read differently by some, in whatever way it is encoded."""
    if len(source) > _LONGEST:
        raise _unclear_source(source)
    decoded = source
    for _ in range(_MOST_DECODINGS):
        if any(ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in "\\?#;" for sign in decoded):
            raise _unclear_source(source)
        if ".." in decoded.split("/"):
            raise _unclear_source(source)
        further = {unquote(decoded), unquote_plus(decoded)} - {decoded}
        if not further:
            return
        if any(each.count("/") != decoded.count("/") for each in further):
            # An encoded slash: a part of a path for some, the end of one for others.
            raise _unclear_source(source)
        decoded = unquote_plus(decoded)
    raise _unclear_source(source)


def wrong_source(source: str, argument: str) -> MlflowError:
    """The error for a source that is not among the files of what the request names."""
    return MlflowError(
        WRONG,
        f"Invalid model version source: '{source[:1000]}'. The {argument} request parameter must identify the "
        "resource that contains the source.",
    )


def _local_source(source: str) -> MlflowError:
    return MlflowError(
        WRONG,
        f"Invalid model version source: '{source[:1000]}'. To use a local path as a model version source, the run_id "
        "request parameter has to be specified and the local path has to be contained within the artifact directory "
        "of the run specified by the run_id.",
    )


def _foreign_file(source: str) -> MlflowError:
    return MlflowError(
        INTERNAL,
        f"{source[:1000]} is not a valid remote uri. For remote access on windows, please consider using a different "
        "scheme such as SMB (e.g. smb://<hostname>/<path>).",
    )


def _unclear_source(source: str) -> MlflowError:
    return MlflowError(
        WRONG,
        f"Invalid model version source: '{source[:1000]}'. If supplying a source as an http, https, local file path, "
        "ftp, objectstore, or mlflow-artifacts uri, an absolute path must be provided without relative path "
        "references present. Please provide an absolute path.",
    )


def is_beneath(path: tuple[str, ...], top: tuple[str, ...]) -> bool:
    """Whether a path is `top` or something in it."""
    return bool(top) and path[: len(top)] == top
