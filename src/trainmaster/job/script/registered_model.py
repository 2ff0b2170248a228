"""RegisteredModel: one version of a registered model, in jobs and outside of them.

Standard library only. `job/script/models.py` has the class for scripts in jobs, `sdk/models/model.py` the one for
programs; both only say how the workspace is asked and how files are kept.
"""

import os

from trainmaster.job.errors import RunEnvironmentException, WebserviceException
from trainmaster.job.script import model_questions
from trainmaster.job.script.identity import new_id, user_name
from trainmaster.job.script.model_rules import (
    Framework,
    check_framework,
    check_labels,
    check_name,
    dataset_error,
    dataset_uses,
    label_names,
)
from trainmaster.job.script.resource_configuration import from_plain, to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from datetime import datetime
    from typing import Any, Callable, Mapping, Sequence, Type, TypeVar

    from trainmaster.job.script.resource_configuration import ResourceConfiguration

    # The subclass whose method is called.
    Model = TypeVar("Model", bound="RegisteredModel")


class DatasetReferences:
    """The datasets that one request about a model names, by their ids."""

    def find_id(self, dataset: object) -> str:
        """The id of a dataset; empty for None."""
        if dataset is None:
            return ""
        if not hasattr(dataset, "id"):
            raise dataset_error(dataset)
        if dataset.id is None:
            raise RunEnvironmentException(
                "{!r} has no id by which the workspace knows it".format(dataset),
                hint="Inside a job a model can refer to inputs of the run and to registered datasets.",
            )
        return str(dataset.id)

    def list_uses(self, datasets: "Any") -> "list[dict[str, str]]":
        """v1's pairs of a purpose and a dataset, as the registry keeps them."""
        return dataset_uses(datasets, self.find_id)

    def to_plain(self) -> "list[Any]":
        """The definitions to be saved with the request: none, because inside a job every dataset has an id already."""
        return []


class RegisteredModel:
    """One version of a registered model, as the workspace last described it."""

    Framework = Framework
    workspace: "Any"
    _record: "Any"

    def __init__(
        self,
        workspace: "Any",
        name: "str | None" = None,
        id: "str | None" = None,
        tags: "Any" = None,
        properties: "Any" = None,
        version: "int | str | None" = None,
        run_id: "str | None" = None,
        model_framework: "str | None" = None,
        expand: bool = True,
        **kwargs: "Any",
    ) -> None:
        self.workspace = workspace
        record = kwargs.get("_record")
        if record is None:
            call = self._caller(workspace)
            found = model_questions.find(call, name, id, version, tags, properties, run_id, model_framework)
            record = self._read(found)
        self._record = record

    # How the workspace is asked, and where files are kept

    @classmethod
    def _class_for(cls: "Type[Model]", workspace: "Any", wanted: str) -> "Type[Model]":
        """The class for models of `workspace`; `wanted` is named in the error where there is none."""
        return cls

    @staticmethod
    def _caller(workspace: "Any") -> "Callable[..., Any]":
        """The function that sends an operation to the workspace."""
        raise NotImplementedError

    @staticmethod
    def _read(answer: "Any") -> "Any":
        """The record in an answer of the workspace."""
        raise NotImplementedError

    @staticmethod
    def _references() -> DatasetReferences:
        return DatasetReferences()

    @classmethod
    def _keep_path(
        cls,
        workspace: "Any",
        path: str,
        child_paths: "Sequence[str] | None",
        description: "dict[str, Any]",
        references: DatasetReferences,
    ) -> "Any":
        """Registers the file or folder `path`; returns the record."""
        raise NotImplementedError

    @classmethod
    def _keep_run_files(
        cls, run: "Any", path: str, description: "dict[str, Any]", references: DatasetReferences
    ) -> "Any":
        """Registers files of a run; returns the record."""
        raise NotImplementedError

    def _copy_into(self, folder: str) -> None:
        """Copies the model's file or folder into `folder`."""
        raise NotImplementedError

    # Registering and finding

    @classmethod
    def register(
        cls: "Type[Model]",
        workspace: "Any",
        model_path: "str | os.PathLike[str]",
        model_name: str,
        tags: "Mapping[str, Any] | None" = None,
        properties: "Mapping[str, Any] | None" = None,
        description: "str | None" = None,
        datasets: "Sequence[tuple[str, Any]] | None" = None,
        model_framework: "str | None" = None,
        model_framework_version: "str | None" = None,
        child_paths: "Sequence[str] | None" = None,
        sample_input_dataset: "Any" = None,
        sample_output_dataset: "Any" = None,
        resource_configuration: "ResourceConfiguration | None" = None,
    ) -> "Model":
        """Keeps a file or a folder as the next version of `model_name`; with `child_paths` only parts of the folder."""
        kind = cls._class_for(workspace, "Model.register")
        references = kind._references()
        said = describe_model(
            references,
            model_name,
            tags=tags,
            properties=properties,
            description=description,
            datasets=datasets,
            framework=model_framework,
            framework_version=model_framework_version,
            sample_input=sample_input_dataset,
            sample_output=sample_output_dataset,
            resources=resource_configuration,
        )
        record = kind._keep_path(workspace, os.fspath(model_path), child_paths, said, references)
        return kind(workspace, _record=record)

    @classmethod
    def _register_run_files(
        cls: "Type[Model]", run: "Any", model_name: str, model_path: "str | os.PathLike[str] | None", **said: "Any"
    ) -> "Model":
        """Keeps files of a run as the next version of a model; `said` goes to `describe_model`."""
        references = cls._references()
        description = dict(describe_model(references, model_name, **said), run_id=run.id)
        path = os.fspath(model_name if model_path is None else model_path)
        record = cls._keep_run_files(run, path, description, references)
        return cls(run.experiment.workspace, _record=record)

    @classmethod
    def list(
        cls: "Type[Model]",
        workspace: "Any",
        name: "str | None" = None,
        tags: "Any" = None,
        properties: "Any" = None,
        run_id: "str | None" = None,
        latest: bool = False,
        dataset_id: "str | None" = None,
        expand: bool = True,
        page_count: int = 255,
        model_framework: "str | None" = None,
    ) -> "builtins.list[Model]":
        """The models that match all filters, newest first; with `latest` only the newest version of each name.

        Filters of tags and properties look like `["key", ["key2", "value"]]`.
        """
        kind = cls._class_for(workspace, "Model.list")
        found = model_questions.list_matching(
            kind._caller(workspace),
            name=name,
            run_id=run_id,
            framework=model_framework,
            dataset_id=dataset_id,
            tags=tags,
            properties=properties,
            latest=bool(latest),
        )
        return [kind(workspace, _record=kind._read(record)) for record in found]

    # What it is

    @property
    def name(self) -> str:
        """The name."""
        return str(self._record.name)

    @property
    def version(self) -> int:
        """The version of the name: 1, 2, 3, ..."""
        return int(self._record.version)

    @property
    def id(self) -> str:
        """`name:version`."""
        return "{}:{}".format(self.name, self.version)

    @property
    def url(self) -> str:
        """The address, in v1's form."""
        return "aml://asset/" + self.id

    @property
    def entry(self) -> str:
        """The name of the file or folder that was registered."""
        return str(self._record.entry)

    @property
    def description(self) -> str:
        """A text for people."""
        return str(self._record.description)

    @property
    def tags(self) -> "dict[str, str]":
        """The labels."""
        return dict(self._record.tags)

    @property
    def properties(self) -> "dict[str, str]":
        """Pairs that never change."""
        return dict(self._record.properties)

    @property
    def facts(self) -> "dict[str, Any]":
        """What programs found out about it, by name: its inputs and outputs, how well a conversion agrees; ours."""
        return dict(self._record.facts)

    @property
    def created_time(self) -> "datetime":
        """When it was registered."""
        return _as_time(self._record.created_at)

    @property
    def modified_time(self) -> "datetime":
        """When its labels, description or facts last changed."""
        return _as_time(self._record.modified_at)

    @property
    def created_by(self) -> str:
        """Who registered it."""
        return str(self._record.created_by)

    @property
    def model_framework(self) -> "str | None":
        """The framework it was made with."""
        return self._record.framework or None

    @property
    def model_framework_version(self) -> "str | None":
        """The version of that framework."""
        return self._record.framework_version or None

    @property
    def resource_configuration(self) -> "ResourceConfiguration | None":
        """What a service of it needs."""
        return from_plain(self._record.resources)

    @property
    def run_id(self) -> "str | None":
        """The run whose files it is made of."""
        return self._record.run_id or None

    @property
    def experiment_name(self) -> "str | None":
        """The experiment of that run."""
        return self._record.experiment or None

    @property
    def lineage(self) -> "dict[str, Any]":
        """What the run was made of: `snapshot_id`, `environment` (its digest), `data`, `datasets`; ours."""
        return dict(self._record.lineage)

    # Its files

    @property
    def path(self) -> str:
        """The file or folder itself, in the workspace; read-only."""
        raise NotImplementedError

    def download(
        self, target_dir: "str | os.PathLike[str]" = ".", exist_ok: bool = False, exists_ok: "bool | None" = None
    ) -> str:
        """Copies it into a folder and returns the path of the copy."""
        folder = os.fspath(target_dir)
        target = os.path.join(folder, self.entry)
        if os.path.exists(target) and not (exist_ok if exists_ok is None else exists_ok):
            raise WebserviceException(
                "{} already exists".format(target), hint="Pass exist_ok=True to overwrite it, or another target_dir."
            )
        try:
            self._copy_into(folder)
        except OSError as error:
            raise WebserviceException(
                "model {} cannot be copied to {}".format(self.id, folder), inner_exception=error, cause=str(error)
            ) from error
        return target

    # Changing it

    def update(
        self,
        tags: "Mapping[str, Any] | None" = None,
        description: "str | None" = None,
        sample_input_dataset: "Any" = None,
        sample_output_dataset: "Any" = None,
        resource_configuration: "ResourceConfiguration | None" = None,
    ) -> None:
        """Sets what is given; `tags` replaces all tags."""
        references = self._references()
        samples = references.find_id(sample_input_dataset), references.find_id(sample_output_dataset)
        changes = model_questions.list_changes(tags, description, *samples, resources=resource_configuration)
        self._change("models.update", changes=changes, datasets=references.to_plain())

    def update_tags_properties(
        self,
        add_tags: "Mapping[str, Any] | None" = None,
        remove_tags: "str | Sequence[str] | None" = None,
        add_properties: "Mapping[str, Any] | None" = None,
    ) -> None:
        """Adds and removes tags and adds properties, all or nothing."""
        self._change(
            "models.relabel",
            add_tags=check_labels(add_tags, "tags"),
            remove_tags=label_names(remove_tags),
            add_properties=check_labels(add_properties, "properties"),
        )

    def add_tags(self, tags: "Mapping[str, Any]") -> None:
        """Adds labels."""
        self.update_tags_properties(add_tags=tags)

    def remove_tags(self, tags: "str | Sequence[str]") -> None:
        """Removes labels by their keys."""
        self.update_tags_properties(remove_tags=tags)

    def add_properties(self, properties: "Mapping[str, Any]") -> None:
        """Adds pairs that never change."""
        self.update_tags_properties(add_properties=properties)

    def add_facts(self, facts: "Mapping[str, Any]") -> None:
        """Keeps facts, each any JSON by a name; a fact of the same name is replaced."""
        self._change("models.relabel", facts=dict(facts))

    def add_dataset_references(self, datasets: "Sequence[tuple[str, Any]]") -> None:
        """Adds datasets, each with what it was used for: `[("training", dataset)]`."""
        references = self._references()
        uses = references.list_uses(datasets)
        self._change("models.refer", datasets=references.to_plain(), uses=uses)

    def delete(self) -> None:
        """Removes it with its contents; refused while a service uses it. Its version is never given again."""
        self._caller(self.workspace)("models.delete", name=self.name, version=self.version)

    def _change(self, op: str, **changes: "Any") -> None:
        call = self._caller(self.workspace)
        self._record = self._read(call(op, name=self.name, version=self.version, **changes))

    def __repr__(self) -> str:
        return "Model(workspace={!r}, name={}, id={}, version={}, tags={}, properties={})".format(
            self.workspace, self.name, self.id, self.version, self.tags, self.properties
        )


def describe_model(
    references: DatasetReferences,
    name: str,
    tags: "Any" = None,
    properties: "Any" = None,
    description: "Any" = None,
    datasets: "Any" = None,
    framework: "Any" = None,
    framework_version: "Any" = None,
    sample_input: "Any" = None,
    sample_output: "Any" = None,
    resources: "Any" = None,
) -> "dict[str, Any]":
    """Everything about a new model except its files, checked, as the registry keeps it."""
    framework, framework_version = check_framework(framework, framework_version)
    return {
        "name": check_name(name),
        "key": new_id(),
        "tags": check_labels(tags, "tags"),
        "properties": check_labels(properties, "properties"),
        "description": str(description or ""),
        "datasets": references.list_uses(datasets),
        "framework": framework,
        "framework_version": framework_version,
        "sample_input": references.find_id(sample_input),
        "sample_output": references.find_id(sample_output),
        "resources": to_plain(resources),
        "created_by": user_name(),
    }


def _as_time(seconds: float) -> "datetime":
    from datetime import datetime, timezone

    return datetime.fromtimestamp(seconds, timezone.utc)
