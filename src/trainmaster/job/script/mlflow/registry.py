"""Registers MLflow's models in the workspace. MLflow finds this class by an entry point of the kit.

A version of a model in MLflow is a version here. Aliases and stages are set by tags, which the workspace understands.
Names, with their tags and descriptions, are those of the workspace's REST API.
"""

import os
from contextlib import contextmanager

from mlflow.entities.model_registry import ModelVersion, ModelVersionTag, RegisteredModel
from mlflow.exceptions import MlflowException
from mlflow.store.entities.paged_list import PagedList
from mlflow.store.model_registry.abstract_store import AbstractStore

from trainmaster.job.errors import ModelNotFoundException, TrainmasterError
from trainmaster.job.script.mlflow.files import folder_of
from trainmaster.job.script.mlflow.releases import make
from trainmaster.job.script.mlflow.sending import send
from trainmaster.job.script.model_rules import check_name
from trainmaster.job.script.models import Model
from trainmaster.job.script.run import get_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

_ALIAS, _STAGE = "mlflow.alias.", "mlflow.stage"
# The names of MLflow's error codes.
_ABSENT, _WRONG = "RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"


class JobRegistry(AbstractStore):  # type: ignore[misc]
    """MLflow's registry of models in a job."""

    def __init__(self, store_uri: "Any" = None, tracking_uri: "Any" = None) -> None:
        super(JobRegistry, self).__init__()
        self._asking: "Any" = None

    @property
    def _names(self) -> "Any":
        """The names of the workspace."""
        if self._asking is None:
            from trainmaster.job.script.mlflow.rest import AskingRegistry

            self._asking = AskingRegistry("trainmaster:run", send)
        return self._asking

    # Names

    def create_registered_model(
        self, name: str, tags: "Any" = None, description: "str | None" = None, deployment_job_id: "Any" = None
    ) -> "Any":
        with _as_mlflow_errors():
            check_name(name)
        return self._names.create_registered_model(name, tags, description)

    def get_registered_model(self, name: str) -> "Any":
        return _describe(self._names.get_registered_model(name), self._versions(name))

    def search_registered_models(
        self, filter_string: "Any" = None, max_results: "Any" = None, order_by: "Any" = None, page_token: "Any" = None
    ) -> "Any":
        found = self._names.search_registered_models(filter_string, max_results or 100, order_by, page_token)
        versions: "dict[str, list[Model]]" = {}
        for model in self._versions(None):
            versions.setdefault(model.name, []).append(model)
        return PagedList([_describe(each, versions.get(each.name, [])) for each in found], found.token)

    def list_registered_models(self, max_results: "Any" = None, page_token: "Any" = None) -> "Any":
        return self.search_registered_models(max_results=max_results, page_token=page_token)

    def get_latest_versions(self, name: str, stages: "Any" = None) -> "Any":
        found = self._names.get_latest_versions(name, stages)
        return [self.get_model_version(name, each.version) for each in found]

    def update_registered_model(self, name: str, description: str, deployment_job_id: "Any" = None) -> "Any":
        self._names.update_registered_model(name, description)
        return self.get_registered_model(name)

    def rename_registered_model(self, name: str, new_name: "Any") -> "Any":
        with _as_mlflow_errors():
            check_name(new_name)
        self._names.rename_registered_model(name, new_name)
        return self.get_registered_model(new_name)

    def delete_registered_model(self, name: str) -> None:
        self._names.delete_registered_model(name)

    def set_registered_model_tag(self, name: str, tag: "Any") -> None:
        self._names.set_registered_model_tag(name, tag)

    def delete_registered_model_tag(self, name: str, key: str) -> None:
        self._names.delete_registered_model_tag(name, key)

    # Versions

    def create_model_version(
        self,
        name: str,
        source: "Any",
        run_id: "str | None" = None,
        tags: "Any" = None,
        run_link: "Any" = None,
        description: "str | None" = None,
        local_model_path: "Any" = None,
        model_id: "str | None" = None,
    ) -> "Any":
        labels = {tag.key: str(tag.value) for tag in tags or () if not _is_mark(tag.key)}
        place, run_id = _place(source, run_id)
        with _as_mlflow_errors():
            model = _register(name, place, run_id, labels, description)
        return _version(model, source)

    def get_model_version(self, name: str, version: "Any") -> "Any":
        return _version(self._model(name, version))

    def get_model_version_download_uri(self, name: str, version: "Any") -> "Any":
        with _as_mlflow_errors():
            return self._model(name, version).path

    def search_model_versions(
        self, filter_string: "Any" = None, max_results: "Any" = None, order_by: "Any" = None, page_token: "Any" = None
    ) -> "Any":
        from mlflow.utils.search_utils import SearchModelVersionUtils

        models = [_version(model) for model in self._versions(None)]
        found = SearchModelVersionUtils.sort(SearchModelVersionUtils.filter(models, filter_string), order_by)
        return PagedList(*SearchModelVersionUtils.paginate(found, page_token, max_results or 10000))

    def update_model_version(self, name: str, version: "Any", description: str) -> "Any":
        model = self._model(name, version)
        with _as_mlflow_errors():
            model.update(description=description)
        return _version(model)

    def delete_model_version(self, name: str, version: "Any") -> None:
        with _as_mlflow_errors():
            self._model(name, version).delete()

    def set_model_version_tag(self, name: str, version: "Any", tag: "Any") -> None:
        self._tag(self._model(name, version), tag.key, tag.value)

    def delete_model_version_tag(self, name: str, version: "Any", key: str) -> None:
        with _as_mlflow_errors():
            self._model(name, version).remove_tags([key])

    def transition_model_version_stage(
        self, name: str, version: "Any", stage: "Any", archive_existing_versions: "Any"
    ) -> "Any":
        chosen = self._model(name, version)
        for model in self._versions(name) if archive_existing_versions else ():
            if model.version != chosen.version and _stage(model) == stage:
                self._tag(model, _STAGE, "Archived")
        self._tag(chosen, _STAGE, stage)
        return self.get_model_version(name, version)

    def set_registered_model_alias(self, name: str, alias: str, version: "Any") -> None:
        chosen = self._model(name, version)
        self.delete_registered_model_alias(name, alias)
        self._tag(chosen, _ALIAS + alias, "true")

    def delete_registered_model_alias(self, name: str, alias: str) -> None:
        for model in self._versions(name):
            if alias in _aliases(model):
                with _as_mlflow_errors():
                    model.remove_tags([_ALIAS + alias])

    def get_model_version_by_alias(self, name: str, alias: str) -> "Any":
        for model in self._versions(name):
            if alias in _aliases(model):
                return _version(model)
        raise _error("Registered model alias {} not found.".format(alias), _WRONG)

    def _tag(self, model: "Model", key: str, value: "Any") -> None:
        with _as_mlflow_errors():
            model.add_tags({key: str(value)})

    def _model(self, name: str, version: "Any") -> "Model":
        if not str(version).isdigit():
            raise _error("{!r} is not a version of a model".format(version), _WRONG)
        with _as_mlflow_errors():
            found: Model = Model(_workspace(), name, version=int(version))
        return found

    def _versions(self, name: "str | None") -> "list[Model]":
        """The versions of this name, or of all names, newest first."""
        with _as_mlflow_errors():
            return sorted(Model.list(_workspace(), name=name), key=lambda model: -model.version)


def _describe(model: "Any", versions: "list[Model]") -> "Any":
    """A name of the workspace, with versions whose files this job finds."""
    return make(
        RegisteredModel,
        name=model.name,
        creation_timestamp=model.creation_timestamp,
        last_updated_timestamp=model.last_updated_timestamp,
        description=model.description,
        latest_versions=_newest(versions),
        tags=[_model_tag(*pair) for pair in model.tags.items()],
        aliases=[_alias(alias, each) for each in versions for alias in _aliases(each)],
    )


def _newest(versions: "list[Model]") -> "list[Any]":
    """The newest version in each stage."""
    newest = {_stage(model): model for model in reversed(versions)}
    return [_version(model) for model in newest.values()]


def _workspace() -> "Any":
    return get_context(allow_offline=False).experiment.workspace


def _place(source: str, run_id: "str | None") -> "tuple[str, str | None]":
    """The folder of a model that MLflow names by an address, and the run that made it."""
    scheme, _, rest = source.partition(":")
    if scheme == "models":
        from mlflow.tracking import MlflowClient

        if "/" in rest.strip("/"):
            name, version = rest.strip("/").split("/")
            model = JobRegistry()._model(name, version)
            return model.path, None
        logged = MlflowClient().get_logged_model(rest.strip("/"))
        return folder_of(logged.artifact_location), logged.source_run_id
    if scheme == "runs":
        named, _, path = rest.strip("/").partition("/")
        return os.path.join(_run(named)._folder, "files", path), named
    return folder_of(source) if scheme in ("trainmaster", "file") else source, run_id


def _register(
    name: str, place: str, run_id: "str | None", tags: "Mapping[str, str]", description: "str | None"
) -> "Model":
    run = _run(run_id)
    files = os.path.join(run._folder, "files")
    if os.path.realpath(place).startswith(os.path.realpath(files) + os.sep):
        inside = os.path.relpath(os.path.realpath(place), os.path.realpath(files))
        registered: Model = run.register_model(name, inside, tags=tags, description=description)
        return registered
    return Model.register(_workspace(), place, name, tags=tags, description=description)


def _run(run_id: "str | None") -> "Any":
    """The run of the job, or a child of it that MLflow's store knows."""
    from mlflow.tracking._tracking_service.utils import _get_store

    job = get_context(allow_offline=False)
    return job if run_id in (None, "", job.id) else _get_store().run_of(run_id)


def _version(model: "Any", source: "Any" = None) -> "Any":
    return make(
        ModelVersion,
        name=model.name,
        version=str(model.version),
        creation_timestamp=_milliseconds(model, "created_at"),
        last_updated_timestamp=_milliseconds(model, "modified_at"),
        description=model.description,
        current_stage=_stage(model),
        source=source or "models:/{}/{}".format(model.name, model.version),
        run_id=model.run_id,
        tags=[ModelVersionTag(key, value) for key, value in model.tags.items() if not _is_mark(key)],
        aliases=_aliases(model),
    )


def _milliseconds(model: "Model", field: str) -> int:
    return int(1000 * getattr(model._record, field))


def _is_mark(key: str) -> bool:
    """Whether a tag is an alias or a stage."""
    return key == _STAGE or key.startswith(_ALIAS)


def _stage(model: "Model") -> str:
    return str(model._record.stage)


def _aliases(model: "Model") -> "list[str]":
    return list(model._record.aliases)


def _alias(alias: str, model: "Any") -> "Any":
    from mlflow.entities.model_registry import RegisteredModelAlias

    return RegisteredModelAlias(alias, str(model.version))


def _model_tag(key: str, value: "Any") -> "Any":
    from mlflow.entities.model_registry import RegisteredModelTag

    return RegisteredModelTag(key, value)


@contextmanager
def _as_mlflow_errors() -> "Iterator[None]":
    """Raises errors of the workspace as errors that MLflow and its users know."""
    try:
        yield
    except ModelNotFoundException as error:
        raise _error(error.message, _ABSENT) from None
    except TrainmasterError as error:
        raise _error(error.message, _WRONG) from None


def _error(message: str, code: str) -> "MlflowException":
    from mlflow.protos.databricks_pb2 import ErrorCode

    return MlflowException(message, error_code=ErrorCode.Value(code))
