"""Where artifacts of MLflow's clients are: among the files of a run, or in a folder of the workspace.

A path has the form `<experiment>/<run>/artifacts/...` for the files of a run, and
`<experiment>/models/<model>/artifacts/...` for those of a logged model, which has a folder in `logged-models`. The
files of a registered model are below `models/<name>/<version>`, for reading only. Any other path is one in the folder
`artifacts` of the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from trainmaster.dispatcher.mlflow.addresses import RunPart, find_model_part, find_run_part, read_uri
from trainmaster.dispatcher.mlflow.errors import ABSENT, EXISTS, WRONG, MlflowError
from trainmaster.server.call import Call
from trainmaster.server.files.datastore_place import DatastorePlace, NewDatastoreFile
from trainmaster.server.files.listing import FolderEntry
from trainmaster.server.files.opening import OpenFile
from trainmaster.server.files.run_place import NameTakenError, NewFile, RunPlace
from trainmaster.server.files.sending import Read
from trainmaster.server.routes.run_files import find_run, make_plain_read, make_read
from trainmaster.shared.model_addresses import read_parts


class Upload(Protocol):
    """A file that is being received."""

    def write(self, piece: bytes) -> None:
        """Add the next bytes."""

    def finish(self) -> None:
        """Give it its name. It is on the disk then."""

    def close(self) -> None:
        """Remove what was not finished."""


class Artifacts(Protocol):
    """Files below one folder, by names that are relative to it. Each method may raise NotBeneathError."""

    def open(self, name: str) -> OpenFile:
        """Open a file."""

    def make_read(self, file: OpenFile) -> Read:
        """The function that reads an open file for clients."""

    def list_folder(self, parts: Sequence[str]) -> list[FolderEntry]:
        """What is in a folder."""

    def enter_parent(self, name: str) -> AbstractContextManager[tuple[int, str]]:
        """The open folder that a new file gets into, and the last part of its name."""

    def receive(self, folder: int, name: str) -> Upload:
        """Begin to receive a file."""

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file or folder, which may be missing."""


@dataclass(frozen=True)
class ArtifactPath:
    """A path that a client gave."""

    whole: str
    """For messages."""
    parts: tuple[str, ...]
    """In the folder."""
    folder: Artifacts
    run_id: str = ""
    model_id: str = ""
    """Whose files they are; without both, they belong to nobody."""

    @property
    def name(self) -> str:
        return "/".join(self.parts)


async def find_artifact(call: Call, parts: tuple[str, ...]) -> ArtifactPath:
    """Where a path below `mlflow-artifacts/artifacts/` is."""
    whole = "/".join(parts)
    run = find_run_part(parts)
    if run is not None and (files := await _find_run_files(call, run)) is not None:
        return ArtifactPath(whole, run.rest, files, run_id=run.run_id)
    folder = call.workspace.folder
    if (model := find_model_part(parts)) is not None:
        model_id, rest = model
        files_of_model = await _open_folder(call, folder.find_logged_model(model_id))
        return ArtifactPath(whole, rest, files_of_model, model_id=model_id)
    if (version := read_parts(parts)) is not None:
        name, number, rest = version
        return ArtifactPath(whole, rest, await _open_version(call, name, number))
    return ArtifactPath(whole, parts, await _open_folder(call, folder.artifacts))


async def _open_version(call: Call, name: str, version: int) -> ModelArtifacts:
    found = await call.ask("mlflow.find_version", name=name, version=version)
    if found is None:
        raise MlflowError(ABSENT, f"Model Version (name={name}, version={version}) not found, or it has no files")
    return ModelArtifacts((await _open_folder(call, Path(found))).place)


async def find_run_artifact(call: Call, run_id: str, parts: tuple[str, ...]) -> tuple[ArtifactPath, str]:
    """Where a path among the files of a run is, and the address of its files."""
    found = await call.ask("mlflow.find_run", run_id=run_id)
    if found is None:
        raise missing_run(run_id)
    uri = found["artifact_uri"]
    root = read_uri(uri)
    if root is None:
        raise MlflowError(
            WRONG,
            f"The artifacts of run '{run_id}' are at '{uri}', which this server does not open. "
            "Use a client that has access to that location.",
        )
    files = RunArtifacts(await find_run(call, run_id), found["may_change"])
    return ArtifactPath("/".join((*root, *parts)), parts, files, run_id=run_id), uri


async def _find_run_files(call: Call, run: RunPart) -> RunArtifacts | None:
    found = await call.ask("mlflow.find_run", run_id=run.run_id)
    if found is not None and read_uri(found["artifact_uri"]) == run.root:
        return RunArtifacts(await find_run(call, run.run_id), found["may_change"])
    return None


def missing_run(run_id: str) -> MlflowError:
    """The error for a run that does not exist."""
    return MlflowError(ABSENT, f"Run with id={run_id} not found")


async def _open_folder(call: Call, path: Path) -> FolderArtifacts:
    top = call.workspace.folder.path
    return FolderArtifacts(DatastorePlace(await to_thread.run_sync(os.path.realpath, top), path.relative_to(top).parts))


@dataclass(frozen=True)
class RunArtifacts:
    """The files of a run."""

    place: RunPlace
    may_change: bool
    """Whether files may be replaced and removed. Those of a job are kept as they are."""

    def open(self, name: str) -> OpenFile:
        return self.place.open(name)

    def make_read(self, file: OpenFile) -> Read:
        return make_read(self.place, file)

    def list_folder(self, parts: Sequence[str]) -> list[FolderEntry]:
        return self.place.list_folder(parts)

    def enter_parent(self, name: str) -> AbstractContextManager[tuple[int, str]]:
        return self.place.enter_parent(name)

    def receive(self, folder: int, name: str) -> Upload:
        return _RunUpload(NewFile(folder), name, self.may_change)

    def remove(self, parts: Sequence[str]) -> None:
        if not self.may_change:
            raise MlflowError(
                "PERMISSION_DENIED",
                f"Files of run {self.place.run_id} cannot be removed: only runs that MLflow created allow it.",
            )
        self.place.remove(parts)


class _RunUpload:
    """A file for a run."""

    def __init__(self, file: NewFile, name: str, may_replace: bool) -> None:
        self._file = file
        self._name = name
        self._may_replace = may_replace
        self.write = file.write
        self.close = file.close

    def finish(self) -> None:
        """Give it its name; one that exists with other contents is refused, unless it may be replaced."""
        if self._may_replace:
            self._file.replace(self._name)
            return
        try:
            self._file.finish(self._name, beside=False)
        except NameTakenError:
            raise MlflowError(
                EXISTS, f"The run has a file named '{self._name}' with other contents. Files of a job never change."
            ) from None


@dataclass(frozen=True)
class FolderArtifacts:
    """A folder of the workspace."""

    place: DatastorePlace

    def open(self, name: str) -> OpenFile:
        return self.place.open(name)

    def make_read(self, file: OpenFile) -> Read:
        return make_plain_read(file)

    def list_folder(self, parts: Sequence[str]) -> list[FolderEntry]:
        return self.place.list_folder(parts)

    def enter_parent(self, name: str) -> AbstractContextManager[tuple[int, str]]:
        return self.place.enter_parent(name)

    def receive(self, folder: int, name: str) -> Upload:
        return _FolderUpload(NewDatastoreFile(folder), name)

    def remove(self, parts: Sequence[str]) -> None:
        self.place.remove(parts)


@dataclass(frozen=True)
class ModelArtifacts(FolderArtifacts):
    """The files of a registered model, which never change."""

    def enter_parent(self, name: str) -> AbstractContextManager[tuple[int, str]]:
        raise _unchangeable()

    def remove(self, parts: Sequence[str]) -> None:
        raise _unchangeable()


def _unchangeable() -> MlflowError:
    return MlflowError("PERMISSION_DENIED", "Files of a registered model never change. Register another version.")


class _FolderUpload:
    """A file for a folder."""

    def __init__(self, file: NewDatastoreFile, name: str) -> None:
        self._file = file
        self._name = name
        self.write = file.write
        self.close = file.close

    def finish(self) -> None:
        """Give it its name, which another file may have had."""
        self._file.finish(self._name)
