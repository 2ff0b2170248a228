"""The names of MLflow's registry: registered models with their tags and aliases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.dispatcher.api.models import ModelOperations
from trainmaster.dispatcher.mlflow.checks import check_name
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import ABSENT, EXISTS, INTERNAL, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.filters import REGISTERED_MODELS, SortKey, parse_filter, parse_order
from trainmaster.dispatcher.mlflow.offsets import read_offset, write_offset
from trainmaster.dispatcher.mlflow.registry_checks import (
    LATEST,
    check_alias,
    check_model_name,
    check_model_tag,
    check_new_alias,
    read_model_tags,
    read_stage,
    read_version,
)
from trainmaster.dispatcher.mlflow.registry_messages import describe_name, describe_version, find_newest
from trainmaster.dispatcher.mlflow.requests import Request, wrong_value
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.registry_search import PROMPT_TAG
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.records import STAGES, ModelRecord, RegisteredModelRecord

_PAGE, _LARGEST_PAGE = 100, 1000


class RegisteredModelEndpoints:
    """Creates, finds, changes and deletes registered models."""

    def __init__(self, store: Store, models: ModelOperations) -> None:
        self._names = store.registered_models
        self._versions = store.models
        self._search = store.registry_search
        self._models = models

    @endpoint("POST", "registered-models/create")
    def create(self, request: Request) -> dict[str, Any]:
        """Register a name."""
        name = check_model_name(request.require_text("name"))
        tags = read_model_tags(request.objects("tags"))
        made = self._names.create(name, request.text("description"), tags)
        if made is None:
            raise _already_there(name, require_name(self._names.get(name), name).tags, tags)
        return {"registered_model": describe_name(made, ())}

    @endpoint("GET", "registered-models/get")
    def get(self, request: Request) -> dict[str, Any]:
        """A registered model."""
        return self._describe(self._find(request))

    @endpoint("PATCH", "registered-models/update")
    def update(self, request: Request) -> dict[str, Any]:
        """Set the description."""
        record = self._find(request)
        self._names.describe(record.name, request.text("description"))
        return self._describe(self._find(request))

    @endpoint("POST", "registered-models/rename")
    async def rename(self, request: Request) -> dict[str, Any]:
        """Rename a registered model with all its versions."""
        request.require_text("name")
        new_name = check_model_name(request.require_text("new_name"), "new_name")
        record = self._find(request)
        if new_name == record.name:
            return self._describe(record)
        try:
            is_renamed = await self._models.rename(record.name, new_name)
        except WebserviceException as error:
            raise refuse_used(error) from None
        if not is_renamed:
            raise MlflowError(EXISTS, f"Registered Model (name={new_name}) already exists.")
        return self._describe(require_name(self._names.get(new_name), new_name))

    @endpoint("DELETE", "registered-models/delete")
    async def delete(self, request: Request) -> dict[str, Any]:
        """Delete a registered model with all its versions."""
        try:
            await self._models.delete_name(self._find(request).name)
        except WebserviceException as error:
            raise refuse_used(error) from None
        return {}

    @endpoint("GET", "registered-models/search")
    def search(self, request: Request) -> dict[str, Any]:
        """Registered models, by name or in another order."""
        most = request.integer("max_results", _PAGE) or 0
        if most > _LARGEST_PAGE:
            raise wrong_value("max_results", request.arguments["max_results"])
        clauses = parse_filter(request.text("filter"), REGISTERED_MODELS)
        order = read_orders(request.texts("order_by"))
        offset = read_offset(request.text("page_token"))
        found = self._search.find_names(clauses, order, max(most, 0) + 1, offset)
        page = found[: max(most, 0)]
        versions = self._search.find_versions_of([each.name for each in page])
        answer: dict[str, Any] = {}
        if page:
            # Only here the newest versions are in the order of their stages.
            by_stage = {name: sorted(found, key=lambda each: each.stage) for name, found in versions.items()}
            answer["registered_models"] = [describe_name(each, by_stage[each.name]) for each in page]
        if len(found) > most >= 0:
            answer["next_page_token"] = write_offset(offset + most)
        return answer

    @endpoint("GET", "registered-models/get-latest-versions")
    @endpoint("POST", "registered-models/get-latest-versions", changes=False)
    def get_latest_versions(self, request: Request) -> dict[str, Any]:
        """The newest version in each of the stages."""
        name = self._find(request).name
        stages = {read_stage(each) for each in request.texts("stages")} or set(STAGES)
        newest = [each for each in find_newest(self._names.list_versions(name)) if each.stage in stages]
        return {"model_versions": [describe_version(each) for each in newest]} if newest else {}

    @endpoint("POST", "registered-models/set-tag")
    def set_tag(self, request: Request) -> dict[str, Any]:
        """Set a tag."""
        key, value = request.require_text("key"), request.text("value")
        check_model_name(request.require_text("name"))
        check_model_tag(key, value)
        record = self._find(request)
        self._names.set_tags(record.name, {**record.tags, key: value})
        return {}

    @endpoint("DELETE", "registered-models/delete-tag")
    def delete_tag(self, request: Request) -> dict[str, Any]:
        """Remove a tag, which may be missing."""
        key = request.require_text("key")
        check_name(key)
        record = self._find(request)
        self._names.set_tags(record.name, {each: value for each, value in record.tags.items() if each != key})
        return {}

    # Aliases

    @endpoint("POST", "registered-models/alias")
    def set_alias(self, request: Request) -> dict[str, Any]:
        """Give an alias to a version."""
        name = check_model_name(request.require_text("name"))
        alias = request.require_text("alias")
        check_new_alias(alias)
        record = require_version(self._versions, name, request.require_text("version"))
        self._versions.set_alias(name, alias, record.version)
        return {}

    @endpoint("DELETE", "registered-models/alias")
    def delete_alias(self, request: Request) -> dict[str, Any]:
        """Remove an alias, which may be missing."""
        alias = request.require_text("alias")
        check_model_name(request.require_text("name"))
        check_alias(alias)
        self._versions.remove_alias(self._find(request).name, alias)
        return {}

    @endpoint("GET", "registered-models/alias")
    def get_version_by_alias(self, request: Request) -> dict[str, Any]:
        """The version that has an alias; `latest` is the newest one."""
        alias = request.require_text("alias")
        check_model_name(request.require_text("name"))
        return {"model_version": describe_version(self.find_by_alias(request.text("name"), alias))}

    def find_by_alias(self, name: str, alias: str) -> ModelRecord:
        """The version that has an alias."""
        check_alias(alias)
        versions = self._names.list_versions(require_name(self._names.get(name), name).name)
        if alias.lower() == LATEST:
            if not versions:
                raise MlflowError(ABSENT, f"Latest version not found for model {name}.")
            return versions[-1]
        for record in versions:
            if alias in record.aliases:
                return record
        raise MlflowError(WRONG, f"Registered model alias {alias} not found.")

    def _find(self, request: Request) -> RegisteredModelRecord:
        name = check_model_name(request.require_text("name"))
        return require_name(self._names.get(name), name)

    def _describe(self, record: RegisteredModelRecord) -> dict[str, Any]:
        return {"registered_model": describe_name(record, self._names.list_versions(record.name))}


def require_name(record: RegisteredModelRecord | None, name: str) -> RegisteredModelRecord:
    """The name, or MLflow's error."""
    if record is None:
        raise MlflowError(ABSENT, f"Registered Model with name={name} not found")
    return record


def require_version(versions: Any, name: str, version: str) -> ModelRecord:
    """The version of a name, or MLflow's error."""
    found: ModelRecord | None = versions.get(name, read_version(version))
    if found is None:
        raise MlflowError(ABSENT, f"Model Version (name={name}, version={version}) not found")
    return found


def refuse_used(error: WebserviceException) -> MlflowError:
    """The error for a model that a service uses. MLflow's server knows no services."""
    return MlflowError(WRONG, " ".join(part for part in (f"{error.headline}.", error.cause, error.hint) if part))


def read_orders(texts: Sequence[str]) -> list[SortKey]:
    """The order of a search of names. As in MLflow, `timestamp` is the time of the last change."""
    order = [_read_order(text) for text in texts]
    check_repeated([each.key for each in order], texts)
    return order


def _read_order(text: str) -> SortKey:
    # Between key and direction there may be any white space.
    key, direction = (*text.replace("`", "").split(None, 1), "", "")[:2]
    if key in ("timestamp", "last_updated_timestamp", "name"):
        known = "name" if key == "name" else "last_updated_timestamp"
        return parse_order(f"{known} {direction}".strip(), REGISTERED_MODELS)
    if not key:
        raise MlflowError(WRONG, f"Invalid order_by clause '{text}'. Could not be parsed.")
    raise MlflowError(WRONG, f"Invalid order by key '{key[:200]}' specified. Valid keys are '{{'name', 'timestamp'}}'")


def check_repeated(keys: Sequence[str], texts: Sequence[str]) -> None:
    """Refuse an order that has a key twice."""
    if len(set(keys)) < len(keys):
        raise MlflowError(INTERNAL, f"`order_by` contains duplicate fields: {list(texts)}")


def _already_there(name: str, old: Any, new: Any) -> MlflowError:
    kinds = ["Prompt" if tags.get(PROMPT_TAG, "").lower() == "true" else "Registered Model" for tags in (old, new)]
    if kinds[0] != kinds[1]:
        return MlflowError(
            EXISTS,
            f"Tried to create a {kinds[1].lower()} with name {name!r}, but the name is already taken by a "
            f"{kinds[0].lower()}. MLflow does not allow creating a model and a prompt with the same name.",
        )
    return MlflowError(EXISTS, f"{kinds[1]} (name={name}) already exists.")
