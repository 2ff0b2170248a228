"""Operations on models."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.model_files import ModelFiles
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store.registry_search import PROMPT_TAG
from trainmaster.environments.prefix import digest
from trainmaster.job.errors import (
    ModelNotFoundException,
    ModelPathNotFoundException,
    TrainmasterError,
    UserErrorException,
    WebserviceException,
)
from trainmaster.job.script.labels import matches
from trainmaster.job.script.model_rules import check_name
from trainmaster.shared.job_spec import load_spec
from trainmaster.shared.records import NO_STAGE, DatasetRecord, DatasetUse, ModelQuery, ModelRecord, RunRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.snapshots.model_contents import Contents
from trainmaster.snapshots.model_facts import facts_of
from trainmaster.snapshots.model_sources import Sources, files_at, files_of_run

_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST_KEY = 64
_LONGEST_FRAMEWORK = 255
_ATTEMPTS = 3
_CHANGEABLE = ("description", "tags", "sample_input", "sample_output", "resources")

Users = Callable[[str, int], Sequence[str]]
"""From a model's name and version to one sentence for each service that uses it."""


class ModelOperations:
    """Operations on models."""

    def __init__(self, context: Context, updates: RunUpdates, find_users: Users) -> None:
        """`find_users` is called before a model is deleted."""
        self._context = context
        self._updates = updates
        self._store = context.store
        self._contents = Contents(context.folder.models)
        self._files = ModelFiles(context.store, context.folder)
        # Keeps contents from being removed between the check for them and the registration of their model.
        self._guard = asyncio.Lock()
        self._find_users = find_users

    @operation("models.register")
    async def register(
        self, model: Mapping[str, Any], datasets: Sequence[Mapping[str, Any]] = ()
    ) -> ModelRecord | None:
        """Register contents that are stored as the next version of a name. None if they are not stored.

        `datasets` are those that the model refers to. They are saved, so that those without a name can be found by id.
        """
        record = _check_record(from_plain(ModelRecord, model))
        known = self._store.models.get_by_key(record.key)
        if known is not None:
            return known
        saved = [from_plain(DatasetRecord, each) for each in datasets]
        record = self._with_lineage(record)
        async with self._guard:
            if not await asyncio.to_thread(self._contents.is_there, record.manifest):
                return None
            facts = await asyncio.to_thread(facts_of, self._contents, record.manifest)
            self._save_datasets(saved)
            return self._store.models.register(replace(record, facts={**facts, **record.facts}))

    @operation("models.keep")
    async def keep(
        self,
        model: Mapping[str, Any],
        path: str,
        of_run: bool = False,
        child_paths: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Register files of a job's run (by their names in it) or of this machine. Answers as `locate`."""
        draft = _read_draft(model)
        if draft.run_id:
            # A child of the job's run is only known after its journals were read.
            await self._updates.bring_in(str(draft.lineage.get("registered_in") or draft.run_id))
            require_run(self._store, draft.run_id)
        found = await self._register_files(draft, path, of_run, child_paths)
        return await self.locate(found.name, found.version)

    @operation("models.register_run_files")
    async def register_run_files(
        self, model: Mapping[str, Any], path: str, datasets: Sequence[Mapping[str, Any]] = ()
    ) -> ModelRecord:
        """Register files of a run, by their names in it, as the next version of a name. `datasets` as in `register`."""
        draft = _read_draft(model)
        require_run(self._store, draft.run_id)
        return await self._register_files(draft, path, True, None, datasets)

    async def register_file(self, model: Mapping[str, Any], path: Path) -> ModelRecord:
        """Register a file that the dispatcher has made."""
        return await self._register_files(_read_draft(model), str(path), False, None)

    async def _register_files(
        self,
        draft: ModelRecord,
        path: str,
        of_run: bool,
        child_paths: Sequence[str] | None,
        datasets: Sequence[Mapping[str, Any]] = (),
    ) -> ModelRecord:
        with self._context.activity.working():
            for _ in range(_ATTEMPTS):
                kept = await asyncio.to_thread(self._keep, draft, path, of_run, child_paths)
                found = await self.register(to_plain(kept), datasets)
                if found is not None:
                    return found
        raise WebserviceException(f"the contents of model '{draft.name}' keep being removed while it is registered")

    async def register_source(self, draft: ModelRecord) -> ModelRecord:
        """Register what is at the source of the draft; a version without files if there is nothing yet."""
        with self._context.activity.working():
            for _ in range(_ATTEMPTS):
                try:
                    kept = self._with_lineage(await asyncio.to_thread(self._files.keep, draft))
                except (ModelPathNotFoundException, UserErrorException):
                    return self._store.models.register(self._with_lineage(draft))
                async with self._guard:
                    if await asyncio.to_thread(self._contents.is_there, kept.manifest):
                        return self._store.models.register(kept)
        raise WebserviceException(f"the contents of model '{draft.name}' keep being removed while it is registered")

    @operation("models.resolve")
    async def resolve(self, name: str, version: int) -> ModelRecord:
        """The model with its contents: a client of MLflow may have registered it before its files were there."""
        record = self.get(name, version)
        if record.manifest:
            return record
        async with self._guard:
            return await asyncio.to_thread(self._files.resolve, record)

    def _keep(self, draft: ModelRecord, path: str, of_run: bool, child_paths: Sequence[str] | None) -> ModelRecord:
        sources = self._sources(draft, path, of_run, child_paths)
        kept = self._contents.keep(sources.entry, sources.files)
        return replace(
            draft,
            manifest=kept.digest,
            entry=sources.entry,
            file_count=len(kept.manifest.files),
            byte_count=kept.manifest.byte_count,
        )

    def _sources(self, draft: ModelRecord, path: str, of_run: bool, child_paths: Sequence[str] | None) -> Sources:
        if of_run:
            return files_of_run(self._context.folder.run(draft.run_id), path)
        return files_at(path, child_paths)

    @operation("models.get")
    def get(self, name: str, version: int | None = None) -> ModelRecord:
        """The model with this name and version; without a version, the newest."""
        found = self._store.models.find(name=name) if version is None else [self._store.models.get(name, version)]
        if not found or found[0] is None:
            raise self._unknown(name, version)
        return found[0]

    @operation("models.list")
    def list(self, query: Mapping[str, Any]) -> list[ModelRecord]:
        """The models that match `query`, newest first."""
        return matching(self._store, from_plain(ModelQuery, query))

    @operation("models.update")
    def update(
        self, name: str, version: int, changes: Mapping[str, Any], datasets: Sequence[Mapping[str, Any]] = ()
    ) -> ModelRecord:
        """Set the description, all tags, samples or resources."""
        self.get(name, version)
        unknown = set(changes) - set(_CHANGEABLE)
        if unknown:
            raise UserErrorException(f"a model's {', '.join(sorted(unknown))} cannot be changed")
        self._save_datasets([from_plain(DatasetRecord, each) for each in datasets])
        if changes:
            self._store.models.update(name, version, **changes)
        return self.get(name, version)

    @operation("models.relabel")
    def relabel(
        self,
        name: str,
        version: int,
        add_tags: Mapping[str, Any] | None = None,
        remove_tags: Sequence[str] = (),
        add_properties: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> ModelRecord:
        """Add and remove tags, add properties (which never change) and facts, all or nothing."""
        record = self.get(name, version)
        self._store.models.relabel(record, add_tags or {}, remove_tags, add_properties or {}, facts or {})
        return self.get(name, version)

    @operation("models.refer")
    def refer(
        self, name: str, version: int, datasets: Sequence[Mapping[str, Any]], uses: Sequence[Mapping[str, Any]]
    ) -> ModelRecord:
        """Add references to datasets."""
        record = self.get(name, version)
        self._save_datasets([from_plain(DatasetRecord, each) for each in datasets])
        new = [from_plain(DatasetUse, each) for each in uses]
        added = [use for use in dict.fromkeys(new) if use not in record.datasets]
        self._store.models.update(name, version, datasets=(*record.datasets, *added))
        return self.get(name, version)

    @operation("models.delete")
    async def delete(self, name: str, version: int) -> None:
        """Delete a model; refused while a service uses it. Deleting it again is not an error."""
        record = self._store.models.get(name, version)
        if record is None:
            if self._store.models.find(name=name):
                return
            raise self._unknown(name, version)
        async with self._guard:
            # No await in between: a service that is deployed afterwards does not find the model.
            self._check_unused(name, version)
            self._store.models.delete(name, version)
            used = self._store.models.find_manifests()
            await asyncio.to_thread(self._contents.drop, name, version, record.manifest, used)

    async def delete_name(self, name: str) -> None:
        """Delete a name with all its versions; refused while a service uses one of them."""
        async with self._guard:
            versions = self._store.registered_models.list_versions(name)
            for each in versions:
                self._check_unused(name, each.version)
            self._store.registered_models.delete(name)
            used = self._store.models.find_manifests()
            for each in versions:
                await asyncio.to_thread(self._contents.drop, name, each.version, each.manifest, used)

    async def rename(self, name: str, new_name: str) -> bool:
        """Rename a name with all its versions; refused while a service uses one. False if the new name is taken."""
        async with self._guard:
            versions = self._store.registered_models.list_versions(name)
            for each in versions:
                self._check_unused(name, each.version)
            if not self._store.registered_models.rename(name, new_name):
                return False
            for each in versions:
                # The files are made again under the new name when somebody needs them.
                await asyncio.to_thread(self._contents.forget, name, each.version)
        return True

    def _check_unused(self, name: str, version: int) -> None:
        users = self._find_users(name, version)
        if users:
            raise WebserviceException(
                f"model {name}:{version} cannot be deleted or renamed: it is deployed",
                cause="\n".join(users),
                hint="Delete the services first, or give them another model.",
            )

    @operation("models.locate")
    async def locate(self, name: str, version: int | None = None) -> dict[str, Any]:
        """The model with `path`, the location of its file or folder on this machine, for a job."""
        found = self.get(name, version)
        record = await self.resolve(found.name, found.version)
        folder = await asyncio.to_thread(self._contents.materialise, record.name, record.version, record.manifest)
        return {**to_plain(record), "path": str(folder / record.entry)}

    def _with_lineage(self, record: ModelRecord) -> ModelRecord:
        """The record with the lineage of its run."""
        if not record.run_id:
            return record
        if record.source and self._store.runs.get(record.run_id) is None:
            # MLflow does not check that there is such a run.
            return record
        run = require_run(self._store, record.run_id)
        # A child has no job: its lineage is that of the job that created it.
        job = run
        while not job.spec and job.parent_id:
            job = require_run(self._store, job.parent_id)
        return replace(record, experiment=run.experiment, lineage={**record.lineage, **lineage(job)})

    def _save_datasets(self, records: Sequence[DatasetRecord]) -> None:
        for record in records:
            self._store.datasets.save(replace(record, created_at=record.created_at or time.time()))

    def _unknown(self, name: str, version: int | None) -> ModelNotFoundException:
        shown = str(name)[:300]
        versions = [str(record.version) for record in self._store.models.find(name=name)]
        if versions:
            return ModelNotFoundException(
                f"ModelNotFound: there is no version {version} of model '{shown}'",
                hint=f"It has: {', '.join(versions[:20])}.",
            )
        known = sorted({record.name for record in self._store.models.find()})
        more = f" and {len(known) - 50} more" if len(known) > 50 else ""
        return ModelNotFoundException(
            f"ModelNotFound: there is no model '{shown}' in this workspace",
            hint=f"Known: {', '.join(known[:50]) or 'none'}{more}. Register one with Model.register(...) "
            "or run.register_model(...).",
        )


def matching(store: Any, query: ModelQuery) -> list[ModelRecord]:
    """The models that match `query`, newest first. Prompts, which MLflow keeps in the same registry, are none."""
    columns = {
        "name": query.name,
        "version": query.version,
        "run_id": query.run_id,
        "framework": query.framework,
    }
    found: list[ModelRecord] = store.models.find(**{key: value for key, value in columns.items() if value is not None})
    chosen = [record for record in found if _is_wanted(record, query)]
    if not query.latest:
        return chosen
    # In ascending order, so that the newest version of each name remains.
    newest = {record.name: record for record in sorted(chosen, key=lambda record: record.version)}
    return [record for record in chosen if newest[record.name] is record]


def _is_wanted(record: ModelRecord, query: ModelQuery) -> bool:
    uses = {use.dataset_id for use in record.datasets}
    return (
        record.tags.get(PROMPT_TAG, "").lower() != "true"
        and matches(record.tags, query.tags)
        and matches(record.properties, query.properties)
        and (query.dataset_id is None or query.dataset_id in uses)
    )


def lineage(run: RunRecord) -> dict[str, Any]:
    """The snapshot, environment and data of a run."""
    found: dict[str, Any] = {"snapshot_id": run.snapshot_id} if run.snapshot_id else {}
    if not run.spec:
        return found
    spec = load_spec(run.spec)
    try:
        found["environment"] = digest(spec.environment)
    except TrainmasterError:
        # An environment that cannot be built has no digest; the run may never have needed it.
        found["environment"] = ""
    data = [f"{each.datastore}/{each.path}" for each in spec.data]
    inputs = [
        {"input": each.name, "id": each.dataset_id, "name": each.dataset_name, "version": each.dataset_version}
        for each in spec.dataset_inputs
    ]
    return {**found, **({"data": data} if data else {}), **({"datasets": inputs} if inputs else {})}


def _read_draft(model: Mapping[str, Any]) -> ModelRecord:
    """A model whose contents are not kept yet."""
    return _check_record(from_plain(ModelRecord, {**model, "manifest": "0" * 64, "entry": ""}))


def _check_record(record: ModelRecord) -> ModelRecord:
    """Check a record from a client: its name becomes a folder, its digest a path."""
    check_name(record.name)
    if not _DIGEST.fullmatch(record.manifest):
        raise UserErrorException(f"{record.manifest[:80]!r} is not the digest of a list of files")
    if not 0 < len(record.key) <= _LONGEST_KEY:
        raise UserErrorException("a registration needs a unique key")
    if record.framework_version and not record.framework:
        raise WebserviceException(
            "model_framework_version was given without model_framework",
            hint="Give both, such as model_framework='PyTorch'.",
        )
    if max(len(record.framework), len(record.framework_version)) > _LONGEST_FRAMEWORK:
        raise WebserviceException(f"a framework has {_LONGEST_FRAMEWORK} characters at most")
    # Only MLflow's endpoints set these, after a check: MLflow's clients open the source of a model.
    return replace(record, stage=NO_STAGE, aliases=(), source="", run_link="", logged_model_id="")
