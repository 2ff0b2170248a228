"""What a script registers with MLflow, as models of the workspace. MLflow finds this by an entry point of the kit.

A version of a model there is one here. Aliases and stages are tags of versions. MLflow creates a name before its first
version; until then it is only remembered.
"""

import os
from contextlib import contextmanager

from mlflow.entities.model_registry import ModelVersion, ModelVersionTag, RegisteredModel
from mlflow.exceptions import MlflowException
from mlflow.store.entities.paged_list import PagedList
from mlflow.store.model_registry.abstract_store import AbstractStore

from trainmaster.job.errors import ModelNotFoundException, TrainmasterError
from trainmaster.job.script.mlflow.files import folder_of
from trainmaster.job.script.mlflow.releases import made, not_here
from trainmaster.job.script.model_rules import check_name
from trainmaster.job.script.models import Model
from trainmaster.job.script.run import get_context

_ALIAS, _STAGE, _NO_STAGE = "mlflow.alias.", "mlflow.stage", "None"
# The names of MLflow's error codes.
_EXISTS, _ABSENT, _WRONG = "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"


class JobRegistry(AbstractStore):  # type: ignore[misc]
    """MLflow's registry of models in a job."""

    def __init__(self, store_uri=None, tracking_uri=None):
        super(JobRegistry, self).__init__()
        self._names = {}

    # Names

    def create_registered_model(self, name, tags=None, description=None, deployment_job_id=None):
        with _told_by_mlflow():
            check_name(name)
        if name in self._names or self._versions(name):
            raise _error("Registered Model (name={}) already exists.".format(name), _EXISTS)
        self._names[name] = ({tag.key: tag.value for tag in tags or ()}, description)
        return self.get_registered_model(name)

    def get_registered_model(self, name):
        versions = self._versions(name)
        if not versions and name not in self._names:
            raise _error("Registered Model with name={} not found".format(name), _ABSENT)
        return self._named(name, versions)

    def _named(self, name, versions):
        tags, description = self._names.get(name, ({}, None))
        newest = [_version(versions[0])] if versions else []
        return made(
            RegisteredModel,
            name=name,
            creation_timestamp=min([_milliseconds(each, "created_at") for each in versions] or [0]),
            last_updated_timestamp=max([_milliseconds(each, "modified_at") for each in versions] or [0]),
            description=description or (versions[0].description if versions else ""),
            latest_versions=newest,
            tags=[_registered_tag(*pair) for pair in tags.items()],
            aliases=[_alias(alias, each) for each in versions for alias in _aliases(each)],
        )

    def search_registered_models(self, filter_string=None, max_results=None, order_by=None, page_token=None):
        from mlflow.utils.search_utils import SearchModelUtils

        versions = {name: [] for name in self._names}  # type: dict[str, list[Model]]
        for model in self._versions(None):
            versions.setdefault(model.name, []).append(model)
        found = SearchModelUtils.filter([self._named(*pair) for pair in versions.items()], filter_string)
        found = SearchModelUtils.sort(found, order_by)
        return PagedList(*SearchModelUtils.paginate(found, page_token, max_results or 100))

    def list_registered_models(self, max_results=None, page_token=None):
        return self.search_registered_models(max_results=max_results, page_token=page_token)

    def get_latest_versions(self, name, stages=None):
        self.get_registered_model(name)
        newest = {}
        for model in reversed(self._versions(name)):
            newest[_stage(model)] = model
        return [_version(model) for stage, model in newest.items() if not stages or stage in stages]

    def update_registered_model(self, name, description, deployment_job_id=None):
        raise not_here("describing a model without a version")

    def rename_registered_model(self, name, new_name):
        raise not_here("renaming models")

    def delete_registered_model(self, name):
        raise not_here("deleting all versions of a model")

    def set_registered_model_tag(self, name, tag):
        raise not_here("a tag of a model without a version")

    def delete_registered_model_tag(self, name, key):
        raise not_here("a tag of a model without a version")

    # Versions

    def create_model_version(
        self,
        name,
        source,
        run_id=None,
        tags=None,
        run_link=None,
        description=None,
        local_model_path=None,
        model_id=None,
    ):
        first_tags, first_description = self._names.get(name, ({}, None))
        labels = dict(first_tags, **{tag.key: str(tag.value) for tag in tags or ()})
        labels = {key: value for key, value in labels.items() if not _is_mark(key)}
        place, run_id = _place(source, run_id)
        with _told_by_mlflow():
            model = _register(name, place, run_id, labels, description or first_description)
        self._names.pop(name, None)
        return _version(model, source)

    def get_model_version(self, name, version):
        return _version(self._model(name, version))

    def get_model_version_download_uri(self, name, version):
        with _told_by_mlflow():
            return self._model(name, version).path

    def search_model_versions(self, filter_string=None, max_results=None, order_by=None, page_token=None):
        from mlflow.utils.search_utils import SearchModelVersionUtils

        models = [_version(model) for model in self._versions(None)]
        found = SearchModelVersionUtils.sort(SearchModelVersionUtils.filter(models, filter_string), order_by)
        return PagedList(*SearchModelVersionUtils.paginate(found, page_token, max_results or 10000))

    def update_model_version(self, name, version, description):
        model = self._model(name, version)
        with _told_by_mlflow():
            model.update(description=description)
        return _version(model)

    def delete_model_version(self, name, version):
        with _told_by_mlflow():
            self._model(name, version).delete()

    def set_model_version_tag(self, name, version, tag):
        self._tag(self._model(name, version), tag.key, tag.value)

    def delete_model_version_tag(self, name, version, key):
        with _told_by_mlflow():
            self._model(name, version).remove_tags([key])

    def transition_model_version_stage(self, name, version, stage, archive_existing_versions):
        chosen = self._model(name, version)
        for model in self._versions(name) if archive_existing_versions else ():
            if model.version != chosen.version and _stage(model) == stage:
                self._tag(model, _STAGE, "Archived")
        self._tag(chosen, _STAGE, stage)
        return self.get_model_version(name, version)

    def set_registered_model_alias(self, name, alias, version):
        chosen = self._model(name, version)
        self.delete_registered_model_alias(name, alias)
        self._tag(chosen, _ALIAS + alias, "true")

    def delete_registered_model_alias(self, name, alias):
        for model in self._versions(name):
            if alias in _aliases(model):
                with _told_by_mlflow():
                    model.remove_tags([_ALIAS + alias])

    def get_model_version_by_alias(self, name, alias):
        for model in self._versions(name):
            if alias in _aliases(model):
                return _version(model)
        raise _error("Registered model alias {} not found.".format(alias), _WRONG)

    def _tag(self, model, key, value):
        with _told_by_mlflow():
            model.add_tags({key: str(value)})

    def _model(self, name, version):
        if not str(version).isdigit():
            raise _error("{!r} is no version of a model".format(version), _WRONG)
        with _told_by_mlflow():
            return Model(_workspace(), name, version=int(version))

    def _versions(self, name):
        """Those of this name, or of all: the newest first."""
        with _told_by_mlflow():
            return sorted(Model.list(_workspace(), name=name), key=lambda model: -model.version)


def _workspace():
    return get_context(allow_offline=False).experiment.workspace


def _place(source, run_id):
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
    return folder_of(source) if scheme in ("trainmaster", "file") else source, run_id


def _register(name, place, run_id, tags, description):
    run = _run(run_id)
    files = os.path.join(run._folder, "files")
    if os.path.realpath(place).startswith(os.path.realpath(files) + os.sep):
        inside = os.path.relpath(os.path.realpath(place), os.path.realpath(files))
        return run.register_model(name, inside, tags=tags, description=description)
    return Model.register(_workspace(), place, name, tags=tags, description=description)


def _run(run_id):
    """The run of the job or one of its children, which MLflow knows by its store."""
    from mlflow.tracking._tracking_service.utils import _get_store

    job = get_context(allow_offline=False)
    return job if run_id in (None, "", job.id) else _get_store().run_of(run_id)


def _version(model, source=None):
    return made(
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


def _milliseconds(model, field):
    return int(1000 * (getattr(model._record, field, None) or 0))


def _is_mark(key):
    """Whether a tag is an alias or a stage."""
    return key == _STAGE or key.startswith(_ALIAS)


def _stage(model):
    return model.tags.get(_STAGE, _NO_STAGE)


def _aliases(model):
    return [key[len(_ALIAS) :] for key in model.tags if key.startswith(_ALIAS)]


def _alias(alias, model):
    from mlflow.entities.model_registry import RegisteredModelAlias

    return RegisteredModelAlias(alias, str(model.version))


def _registered_tag(key, value):
    from mlflow.entities.model_registry import RegisteredModelTag

    return RegisteredModelTag(key, value)


@contextmanager
def _told_by_mlflow():
    """What the workspace refuses, as an error that MLflow and its users know."""
    try:
        yield
    except ModelNotFoundException as error:
        raise _error(error.message, _ABSENT) from None
    except TrainmasterError as error:
        raise _error(error.message, _WRONG) from None


def _error(message, code):
    from mlflow.protos.databricks_pb2 import ErrorCode

    return MlflowException(message, error_code=ErrorCode.Value(code))
