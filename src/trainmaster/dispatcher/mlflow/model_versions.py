"""The versions of MLflow's registry, which are the versions of our models."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import replace
from typing import Any

from trainmaster.dispatcher.api.models import ModelOperations
from trainmaster.dispatcher.mlflow.checks import check_name
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import ABSENT, INTERNAL, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.filters import MODEL_VERSIONS, SortKey, parse_filter, parse_order
from trainmaster.dispatcher.mlflow.model_sources import (
    ArtifactSource,
    LoggedModelSource,
    RunSource,
    VersionSource,
    join_slashes,
    parse_source,
    wrong_source,
)
from trainmaster.dispatcher.mlflow.offsets import read_offset, write_offset
from trainmaster.dispatcher.mlflow.registered_models import (
    RegisteredModelEndpoints,
    check_repeated,
    refuse_used,
    require_name,
    require_version,
)
from trainmaster.dispatcher.mlflow.registry_checks import (
    check_model_name,
    check_model_tag,
    read_model_tags,
    read_stage,
    read_version,
)
from trainmaster.dispatcher.mlflow.registry_messages import describe_version, find_newest, source_of
from trainmaster.dispatcher.mlflow.requests import Request, wrong_value
from trainmaster.dispatcher.model_files import ModelFiles
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.registry_search import PROMPT_TAG
from trainmaster.job.errors import ModelPathNotFoundException, WebserviceException
from trainmaster.shared.model_addresses import make_address
from trainmaster.shared.records import ARCHIVED, NO_MANIFEST, PRODUCTION, STAGING, ModelRecord

_LARGEST_PAGE = 200_000
_PROMPT_SOURCES = ("dummy-source", "prompt-template")
"""What MLflow's clients send as the source of a prompt, which has no files."""
_VERSIONS_TAG = "mlflow.modelVersions"
_DEFAULT_ORDER = ("last_updated_timestamp DESC", "name ASC", "version_number DESC")
_ACTIVE_STAGES = [STAGING, PRODUCTION]


class ModelVersionEndpoints:
    """Creates, finds, changes and deletes versions of registered models."""

    def __init__(
        self, store: Store, models: ModelOperations, names: RegisteredModelEndpoints, files: ModelFiles
    ) -> None:
        self._store = store
        self._versions = store.models
        self._models = models
        self._names = names
        self._files = files

    @endpoint("POST", "model-versions/create")
    async def create(self, request: Request) -> dict[str, Any]:
        """Register files of a run, of a logged model, or of another version, as the next version of a name."""
        draft = self._read_draft(request)
        require_name(self._store.registered_models.get(draft.name), draft.name)
        if draft.source in _PROMPT_SOURCES:
            made = self._versions.register(draft)
        else:
            made = await self._models.register_source(draft)
        if made.logged_model_id:
            self._note_version(made)
        return _answer(made)

    @endpoint("GET", "model-versions/get")
    def get(self, request: Request) -> dict[str, Any]:
        """A version."""
        return _answer(self._find(request))

    @endpoint("PATCH", "model-versions/update")
    def update(self, request: Request) -> dict[str, Any]:
        """Set the description."""
        record = self._find(request)
        self._versions.update(record.name, record.version, description=request.text("description"))
        return _answer(self._find(request))

    @endpoint("POST", "model-versions/transition-stage")
    def transition_stage(self, request: Request) -> dict[str, Any]:
        """Set the stage, and archive the other versions in it if that is asked for."""
        for name in ("name", "version", "stage"):
            request.require_text(name)
        given = request.text("stage")
        stage = read_stage(given)
        is_alone = request.flag("archive_existing_versions")
        if is_alone and stage not in _ACTIVE_STAGES:
            raise MlflowError(
                INTERNAL,
                "Model version transition cannot archive existing model versions because "
                f"'{given}' is not an Active stage. Valid stages are {_ACTIVE_STAGES}",
            )
        record = self._find(request)
        self._versions.set_stage(record.name, record.version, stage, ARCHIVED if is_alone else "")
        return _answer(self._find(request))

    @endpoint("DELETE", "model-versions/delete")
    async def delete(self, request: Request) -> dict[str, Any]:
        """Delete a version. Its number is not given again while its name is registered."""
        record = self._find(request)
        try:
            await self._models.delete(record.name, record.version)
        except WebserviceException as error:
            raise refuse_used(error) from None
        return {}

    @endpoint("GET", "model-versions/search")
    async def search(self, request: Request) -> dict[str, Any]:
        """Versions of all names, those that changed last first, or in another order."""
        most = request.integer("max_results", _LARGEST_PAGE) or 0
        if most > _LARGEST_PAGE:
            raise wrong_value("max_results", request.arguments["max_results"])
        if most < 1:
            raise MlflowError(WRONG, f"Invalid value for max_results. It must be a positive integer, but got {most}")
        clauses = parse_filter(request.text("filter"), MODEL_VERSIONS)
        order = _read_orders(request.texts("order_by"))
        offset = read_offset(request.text("page_token"))
        # A page may have all versions of a workspace.
        found = await asyncio.to_thread(self._store.registry_search.find_versions, clauses, order, most + 1, offset)
        answer: dict[str, Any] = {}
        if found:
            answer["model_versions"] = [describe_version(each, with_aliases=False) for each in found[:most]]
        if len(found) > most:
            answer["next_page_token"] = write_offset(offset + most)
        return answer

    @endpoint("GET", "model-versions/get-download-uri")
    def get_download_uri(self, request: Request) -> dict[str, Any]:
        """Where clients download the files of a version."""
        name = check_model_name(request.text("name"))
        return {"artifact_uri": self._find_address(require_version(self._versions, name, request.text("version")))}

    @endpoint("POST", "model-versions/set-tag")
    def set_tag(self, request: Request) -> dict[str, Any]:
        """Set a tag."""
        key, value = request.require_text("key"), request.text("value")
        check_model_name(request.require_text("name"))
        read_version(request.require_text("version"))
        check_model_tag(key, value)
        record = self._find(request)
        self._versions.set_quietly(record.name, record.version, tags={**record.tags, key: value})
        return {}

    @endpoint("DELETE", "model-versions/delete-tag")
    def delete_tag(self, request: Request) -> dict[str, Any]:
        """Remove a tag, which may be missing."""
        key = request.require_text("key")
        check_name(key)
        record = self._find(request)
        kept = {each: value for each, value in record.tags.items() if each != key}
        self._versions.set_quietly(record.name, record.version, tags=kept)
        return {}

    def _find(self, request: Request) -> ModelRecord:
        name = check_model_name(request.require_text("name"))
        return require_version(self._versions, name, request.require_text("version"))

    def _note_version(self, record: ModelRecord) -> None:
        """List the version in a tag of its logged model, as MLflow does."""
        logged = self._store.logged_models.get(record.logged_model_id)
        if logged is not None:
            listed = [*_read_list(logged.tags.get(_VERSIONS_TAG, "")), {"name": record.name, "version": record.version}]
            self._store.logged_models.set_tags(logged.id, {_VERSIONS_TAG: json.dumps(listed)})

    # Sources

    def _read_draft(self, request: Request) -> ModelRecord:
        """The version that a request describes, with a source that was checked."""
        name, source = request.require_text("name"), request.require_text("source")
        tags = read_model_tags(request.objects("tags"))
        texts = {key: request.text(key) for key in ("run_id", "run_link", "description", "model_id")}
        check_model_name(name)
        draft = ModelRecord(
            name,
            uuid.uuid4().hex,
            NO_MANIFEST,
            "",
            description=texts["description"],
            tags=tags,
            run_id=texts["run_id"],
            created_by=request.user,
            source=source,
            run_link=texts["run_link"],
            logged_model_id=texts["model_id"],
        )
        if tags.get(PROMPT_TAG, "").lower() == "true":
            return _check_prompt(draft)
        return self._check_source(draft, request)

    def _check_source(self, draft: ModelRecord, request: Request) -> ModelRecord:
        """The draft, if its source is an address of this workspace.

        `runs:/...` names a run itself, which may be another one than that of the request, as MLflow allowed it for
        long. Every other address must be among the files of the run or logged model that the request names.
        """
        found = parse_source(draft.source)
        match found:
            case VersionSource():
                return self._inherit(draft, found, request)
            case RunSource() if not draft.logged_model_id:
                return draft
            case LoggedModelSource() if found.model_id == draft.logged_model_id:
                return self._with_run(draft)
            case ArtifactSource():
                try:
                    self._files.find_owner(found, draft.run_id, draft.logged_model_id)
                except ModelPathNotFoundException:
                    raise wrong_source(draft.source, "model_id" if draft.logged_model_id else "run_id") from None
                return self._with_run(draft)
        raise wrong_source(draft.source, "model_id")

    def _with_run(self, draft: ModelRecord) -> ModelRecord:
        """The draft with the run that made its logged model."""
        if not draft.logged_model_id:
            return draft
        owner = self._store.model_owners.find_logged_model(draft.logged_model_id)
        if owner is None:
            raise MlflowError(
                ABSENT,
                f"Unable to fetch model from model URI source artifact location '{draft.source}'. "
                f"Error: Logged model with ID '{draft.logged_model_id}' not found.",
            )
        return replace(draft, run_id=draft.run_id or owner.run_id)

    def _inherit(self, draft: ModelRecord, source: VersionSource, request: Request) -> ModelRecord:
        """The draft as a copy of another version."""
        other = self._find_version(draft.source, source)
        is_other_run = request.has("run_id") and draft.run_id != other.run_id
        is_other_model = request.has("model_id") and draft.logged_model_id != other.logged_model_id
        if is_other_run or is_other_model:
            raise MlflowError(
                WRONG,
                f"Invalid model version source: '{draft.source}'. The run_id and model_id request parameters must "
                "match the referenced model version.",
            )
        return replace(
            draft,
            source=f"models:/{other.name}/{other.version}",
            run_id=other.run_id,
            logged_model_id=other.logged_model_id,
        )

    def _find_version(self, given: str, source: VersionSource) -> ModelRecord:
        name = check_model_name(source.name)
        registered = require_name(self._store.registered_models.get(name), name)
        if registered.tags.get(PROMPT_TAG, "").lower() == "true":
            raise MlflowError(
                WRONG,
                f"Invalid model version source: '{given}'. Prompt versions cannot be used as model version sources.",
            )
        if source.version is not None:
            return require_version(self._versions, name, str(source.version))
        if source.alias:
            return self._names.find_by_alias(name, source.alias)
        versions = self._store.registered_models.list_versions(name)
        if source.stage:
            stage = read_stage(source.stage)
            versions = [each for each in find_newest(versions) if each.stage == stage]
        if not versions:
            shown = f" and stage '{source.stage}'" if source.stage else ""
            raise MlflowError(INTERNAL, f"No versions of model with name '{name}'{shown} found")
        return versions[-1]

    def _find_address(self, record: ModelRecord) -> str:
        """Where the files of a version are: at its source as long as that is there, else among the models."""
        if not record.source or record.source in _PROMPT_SOURCES:
            return source_of(record)
        found = parse_source(record.source)
        match found:
            case VersionSource():
                other = self._versions.get(found.name, found.version or 0)
                if other is not None and other.version and other.key != record.key:
                    return self._find_address(other)
            case LoggedModelSource():
                top = self._files.find_model_top(found.model_id)
                if top is not None:
                    return "mlflow-artifacts:/" + "/".join(top)
            case RunSource():
                if not record.manifest or self._files.find_run_top(found.run_id) is not None:
                    return join_slashes(record.source)
            case ArtifactSource():
                return join_slashes(record.source)
        return make_address(record.name, record.version) if record.manifest else record.source


def _answer(record: ModelRecord) -> dict[str, Any]:
    return {"model_version": describe_version(record)}


def _read_list(text: str) -> list[Any]:
    """The list in a tag, which any client may have written."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _check_prompt(draft: ModelRecord) -> ModelRecord:
    if draft.source not in _PROMPT_SOURCES:
        raise MlflowError(
            WRONG, f"Invalid prompt source: '{draft.source[:1000]}'. Prompt sources must use an MLflow placeholder."
        )
    return draft


def _read_orders(texts: list[str]) -> list[SortKey]:
    order = [parse_order(text, MODEL_VERSIONS) for text in texts or _DEFAULT_ORDER]
    check_repeated([each.key for each in order], texts)
    return order
