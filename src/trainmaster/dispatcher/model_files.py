"""Finds the files that the source of a model names, and makes them its contents.

A client of MLflow may register a version before its files are there. They are looked for again when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.mlflow.errors import MlflowError
from trainmaster.dispatcher.mlflow.model_sources import (
    ArtifactSource,
    LoggedModelSource,
    RunSource,
    Source,
    VersionSource,
    is_beneath,
    parse_source,
)
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.model_owners import ModelOwner
from trainmaster.job.errors import ModelPathNotFoundException, UserErrorException, WebserviceException
from trainmaster.job.script.files import PARTIAL_PREFIX
from trainmaster.shared import run_files
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import NO_MANIFEST, ModelRecord
from trainmaster.snapshots.model_contents import Contents
from trainmaster.snapshots.model_facts import facts_of
from trainmaster.snapshots.model_sources import Sources, choose

_ENTRY = "model"
"""The name of the folder in which a model is whose source is a folder without a name."""
_ATTEMPTS = 3
_ARTIFACT_SCHEME = "mlflow-artifacts:"
_ARTIFACTS = "artifacts"


class ModelFiles:
    """Finds and keeps the files of versions."""

    def __init__(self, store: Store, folder: WorkspaceFolder) -> None:
        self._store = store
        self._folder = folder
        self._contents = Contents(folder.models)

    def keep(self, draft: ModelRecord) -> ModelRecord:
        """The draft with the contents that its source names. Raises ModelPathNotFoundException without files."""
        source = self.find_owner(parse_source(draft.source), draft.run_id, draft.logged_model_id)
        if isinstance(source, VersionSource):
            return self._share(draft, source)
        sources = self._list_files(source)
        kept = self._contents.keep(sources.entry, sources.files)
        facts = facts_of(self._contents, kept.digest)
        return replace(
            draft,
            manifest=kept.digest,
            entry=sources.entry,
            file_count=len(kept.manifest.files),
            byte_count=kept.manifest.byte_count,
            facts={**facts, **draft.facts},
        )

    def resolve(self, record: ModelRecord) -> ModelRecord:
        """The record with contents: those it has, or those that are at its source now."""
        if record.manifest != NO_MANIFEST:
            return record
        for _ in range(_ATTEMPTS):
            try:
                kept = self.keep(record)
            except (MlflowError, ModelPathNotFoundException, UserErrorException) as error:
                raise ModelPathNotFoundException(
                    f"model {record.name}:{record.version} has no files yet",
                    cause=f"There is nothing at {record.source}. {error.headline}",
                    hint="Log its files, or register the model again from where they are.",
                ) from None
            values: dict[str, Any] = {
                name: getattr(kept, name) for name in ("manifest", "entry", "file_count", "byte_count", "facts")
            }
            self._store.models.set_quietly(record.name, record.version, **values)
            if self._contents.is_there(kept.manifest):
                return kept
        raise WebserviceException(f"the contents of model '{record.name}' keep being removed while they are kept")

    def find_owner(self, source: Source, run_id: str, model_id: str) -> RunSource | LoggedModelSource | VersionSource:
        """The source in terms of the run or the logged model that has the files."""
        if not isinstance(source, ArtifactSource):
            return source
        if model_id:
            top = self.find_model_top(model_id)
            if top is not None and is_beneath(source.path, top):
                return LoggedModelSource(model_id, source.path[len(top) :])
        elif run_id:
            top = self.find_run_top(run_id)
            if top is not None and is_beneath(source.path, top):
                return RunSource(run_id, source.path[len(top) :])
        raise ModelPathNotFoundException("the address is not among the files of its run or logged model")

    def find_run_top(self, run_id: str) -> tuple[str, ...] | None:
        """The path of a run's files among the artifacts of this server; None if they are elsewhere or nowhere."""
        return _find_top(self._store.model_owners.find_run(run_id), run_id)

    def find_model_top(self, model_id: str) -> tuple[str, ...] | None:
        """The path of a logged model's files; None if they are elsewhere or nowhere."""
        return _find_top(self._store.model_owners.find_logged_model(model_id), "models", model_id)

    def _share(self, draft: ModelRecord, source: VersionSource) -> ModelRecord:
        """The draft with the contents of another version: nothing is copied."""
        other = self._store.models.get(source.name, source.version or 0)
        if other is None:
            raise ModelPathNotFoundException(f"there is no model {source.name}:{source.version}")
        if (other.name, other.version) == (draft.name, draft.version):
            raise ModelPathNotFoundException("a model cannot be its own source")
        other = self.resolve(other)
        names = ("manifest", "entry", "file_count", "byte_count", "framework", "framework_version", "facts")
        shared: dict[str, Any] = {name: getattr(other, name) for name in names}
        return replace(draft, **shared)

    def _list_files(self, source: RunSource | LoggedModelSource) -> Sources:
        if isinstance(source, LoggedModelSource):
            return _list_folder(self._find_folder(source.model_id), source.path)
        folder = self._folder.run(source.run_id)
        names = run_files.names(folder)
        logged = self._find_logged_model(source) if not _has_path(names, source.path) else None
        if logged is not None:
            return _list_folder(self._find_folder(logged), source.path[1:])
        if not source.path:
            return _require_files(_ENTRY, {f"{_ENTRY}/{name}": folder.files / name for name in names})
        entry, chosen = choose(names, f"{'/'.join(source.path)}/" if len(names) else "", source.run_id)
        return Sources(entry, {inside: folder.files / name for inside, name in chosen.items()})

    def _find_folder(self, model_id: str) -> Path:
        """The folder with the files of a logged model."""
        if self.find_model_top(model_id) is None:
            raise ModelPathNotFoundException(f"there are no files of the logged model {model_id} in this workspace")
        return self._folder.find_logged_model(model_id)

    def _find_logged_model(self, source: RunSource) -> str | None:
        """MLflow 3 keeps `runs:/<run>/<name>` as a logged model of that name, which is not among the run's files."""
        if not source.path:
            return None
        return self._store.model_owners.find_logged_model_of_run(source.run_id, source.path[0])


def _find_top(owner: ModelOwner | None, *parts: str) -> tuple[str, ...] | None:
    """The path of an owner's files on this server."""
    if owner is None:
        return None
    location = owner.location or f"{_ARTIFACT_SCHEME}/{owner.experiment_id}"
    if not location.startswith(f"{_ARTIFACT_SCHEME}/") or location.startswith(f"{_ARTIFACT_SCHEME}//"):
        return None
    top = location.removeprefix(_ARTIFACT_SCHEME).strip("/")
    return (*(top.split("/") if top else ()), *parts, _ARTIFACTS)


def _has_path(names: Sequence[str], path: tuple[str, ...]) -> bool:
    wanted = "/".join(path)
    return any(name == wanted or name.startswith(f"{wanted}/") for name in names) if wanted else bool(names)


def _list_folder(top: Path, path: tuple[str, ...]) -> Sources:
    """The files below a folder of the workspace. Links that lead out of it are left out."""
    place = top.joinpath(*path)
    if path and place.is_file() and _is_inside(place, top):
        return Sources(path[-1], {path[-1]: place})
    entry = path[-1] if path else _ENTRY
    found = {}
    for parent, _, files in os.walk(place):
        for file in files:
            whole = Path(parent, file)
            if not file.startswith(PARTIAL_PREFIX) and whole.is_file() and _is_inside(whole, top):
                found[f"{entry}/{whole.relative_to(place).as_posix()}"] = whole
    return _require_files(entry, found)


def _is_inside(path: Path, top: Path) -> bool:
    return path.resolve().is_relative_to(top.resolve())


def _require_files(entry: str, files: dict[str, Path]) -> Sources:
    if not files:
        raise ModelPathNotFoundException("there are no files at the source of the model")
    return Sources(entry, files)
