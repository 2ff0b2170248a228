"""Model: one version of a registered model."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.job.script import model_questions
from trainmaster.job.script.model_rules import Framework, checked_labels, label_names
from trainmaster.job.script.resource_configuration import ResourceConfiguration
from trainmaster.sdk.models.described import Described
from trainmaster.sdk.models.references import References
from trainmaster.sdk.models.registering import draft, register
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.snapshots.model_contents import Contents, Manifest, copied
from trainmaster.snapshots.model_sources import files_at

if TYPE_CHECKING:
    from trainmaster.sdk.services.packaging import ModelPackage
    from trainmaster.sdk.services.profiling import ModelProfile
    from trainmaster.sdk.services.webservice import Webservice
    from trainmaster.sdk.workspace.workspace import Workspace


class Model(Described):
    """A registered model: by its name (the newest version unless one is given), or by its id `name:version`.

    >>> model = Model.register(ws, "outputs/model.pkl", "mnist")      # doctest: +SKIP
    >>> Model(ws, "mnist").download("here")                           # doctest: +SKIP
    'here/model.pkl'
    """

    Framework = Framework

    def __init__(
        self,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Any = None,
        properties: Any = None,
        version: int | str | None = None,
        run_id: str | None = None,
        model_framework: str | None = None,
        expand: bool = True,
        **kwargs: Any,
    ) -> None:
        self.workspace = workspace
        record = kwargs.get("_record")
        if record is None:
            asked = (name, id, version, tags, properties, run_id, model_framework)
            record = from_plain(ModelRecord, model_questions.find(workspace._call, *asked))
        self._record: ModelRecord = record

    @staticmethod
    def register(
        workspace: Workspace,
        model_path: str | os.PathLike[str],
        model_name: str,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        datasets: Sequence[tuple[str, Any]] | None = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        child_paths: Sequence[str] | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: ResourceConfiguration | None = None,
    ) -> Model:
        """Keeps a file or a folder as the next version of `model_name`; with `child_paths` only parts of the folder."""
        references = References()
        said = draft(
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
        record = register(workspace, files_at(model_path, child_paths), said, references)
        return Model(workspace, _record=record)

    @staticmethod
    def list(
        workspace: Workspace,
        name: str | None = None,
        tags: Any = None,
        properties: Any = None,
        run_id: str | None = None,
        latest: bool = False,
        dataset_id: str | None = None,
        expand: bool = True,
        page_count: int = 255,
        model_framework: str | None = None,
    ) -> builtins.list[Model]:
        """The models for which all of it is true, newest first; with `latest` only the newest of each name.

        Tags and properties are asked for as `["key", ["key2", "value"]]`.
        """
        found = model_questions.matching(
            workspace._call,
            name=name,
            run_id=run_id,
            framework=model_framework,
            dataset_id=dataset_id,
            tags=tags,
            properties=properties,
            latest=bool(latest),
        )
        return [Model(workspace, _record=from_plain(ModelRecord, record)) for record in found]

    # Its files

    @property
    def mime_type(self) -> str:
        """v1's kind of contents."""
        return "application/x-tar" if self.unpack else "application/octet-stream"

    @property
    def unpack(self) -> bool:
        """Whether it is a folder."""
        return any("/" in file.path for file in self.manifest().files)

    @property
    def entry(self) -> str:
        """The name of the file or folder that was registered."""
        return self._record.entry

    def manifest(self) -> Manifest:
        """The list of its files with their digests (SHA-256)."""
        return self._contents.manifest(self._record.manifest)

    @property
    def manifest_path(self) -> str:
        """Where that list lies, as JSON: for a service, which checks its model with `job/script/model_files.py`."""
        return str(self._contents.list_path(self._record.manifest))

    def materialised_folder(self) -> Path:
        """A folder with the entry and nothing else, in the workspace; its files are read-only."""
        return self._contents.materialise(self.name, self.version, self._record.manifest)

    @property
    def path(self) -> str:
        """The file or folder itself, in the workspace; read-only."""
        return str(self.materialised_folder() / self.entry)

    def download(
        self, target_dir: str | os.PathLike[str] = ".", exist_ok: bool = False, exists_ok: bool | None = None
    ) -> str:
        """Copies it into a folder and returns the path of the copy."""
        target = Path(target_dir) / self.entry
        if target.exists() and not (exist_ok if exists_ok is None else exists_ok):
            raise WebserviceException(
                f"{target} is there already",
                hint="Give exist_ok=True to write over it.",
            )
        try:
            self._contents.copy_to(Path(target_dir), self.manifest(), copied)
        except OSError as error:
            raise WebserviceException(f"model {self.id} cannot be copied to {target_dir}", cause=str(error)) from None
        return str(target)

    def verify(self) -> None:
        """Reads all its files and raises WebserviceException if one is not what was registered."""
        self._contents.check(self.name, self.version, self._record.manifest)

    def get_sas_urls(self) -> dict[str, str]:
        """Name of each file to its address: files of this machine."""
        folder = self.materialised_folder()
        return {file.path: (folder / file.path).as_uri() for file in self.manifest().files}

    @staticmethod
    def get_model_path(model_name: str, version: int | None = None, _workspace: Workspace | None = None) -> str:
        """Where a model's file or folder lies: in a service, a job, or `_workspace`; else `model_name` as a path."""
        from trainmaster.job.script.models import find_path

        def of_workspace(name: str, wanted: int | None) -> str:
            assert _workspace is not None
            return Model(_workspace, name, version=wanted).path

        found: str = find_path(model_name, version, of_workspace if _workspace is not None else None)
        return found

    # Labels

    def update(
        self,
        tags: Mapping[str, Any] | None = None,
        description: str | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: ResourceConfiguration | None = None,
    ) -> None:
        """Sets what is given; `tags` takes the place of all tags."""
        references = References()
        samples = references.sample(sample_input_dataset), references.sample(sample_output_dataset)
        changes = model_questions.changes(tags, description, *samples, resource_configuration)
        self._change("models.update", changes=changes, datasets=references.plain())

    def update_tags_properties(
        self,
        add_tags: Mapping[str, Any] | None = None,
        remove_tags: str | Sequence[str] | None = None,
        add_properties: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds and drops tags and adds properties, all or nothing."""
        self._relabel(
            add_tags=checked_labels(add_tags, "tags"),
            remove_tags=label_names(remove_tags),
            add_properties=checked_labels(add_properties, "properties"),
        )

    def add_tags(self, tags: Mapping[str, Any]) -> None:
        """Adds labels."""
        self.update_tags_properties(add_tags=tags)

    def remove_tags(self, tags: str | Sequence[str]) -> None:
        """Drops labels by their keys."""
        self.update_tags_properties(remove_tags=tags)

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Adds pairs that never change."""
        self.update_tags_properties(add_properties=properties)

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Keeps facts, each any JSON by a name; one that is there is replaced."""
        self._relabel(facts=json.loads(json.dumps(dict(facts))))

    def add_dataset_references(self, datasets: Sequence[tuple[str, Any]]) -> None:
        """Adds datasets, each with what it was used for: `[("training", dataset)]`."""
        references = References()
        uses = [to_plain(use) for use in references.uses(datasets)]
        self._change("models.refer", datasets=references.plain(), uses=uses)

    def delete(self) -> None:
        """Removes it with its contents; refused while a service has it. Its version is never given again."""
        self.workspace._call("models.delete", name=self.name, version=self.version)

    # As plain data

    def serialize(self) -> dict[str, Any]:
        """What it is, as a dict with v1's keys."""
        resources = self.resource_configuration
        return {
            "createdTime": self.created_time.isoformat(),
            "modifiedTime": self.modified_time.isoformat(),
            "createdBy": self.created_by,
            "description": self.description,
            "experimentName": self.experiment_name,
            "framework": self.model_framework,
            "frameworkVersion": self.model_framework_version,
            "id": self.id,
            "name": self.name,
            "properties": self.properties,
            "resourceRequirements": resources.serialize() if resources else None,
            "runId": self.run_id,
            "sampleInputDatasetId": self._record.sample_input or None,
            "sampleOutputDatasetId": self._record.sample_output or None,
            "tags": self.tags,
            "url": self.url,
            "version": self.version,
        }

    @staticmethod
    def deserialize(workspace: Workspace, model_payload: Mapping[str, Any]) -> Model:
        """The model of the workspace that `serialize` described."""
        return Model(workspace, id=str(model_payload["id"]))

    # Services

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        models: builtins.list[Any],
        inference_config: Any = None,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
        show_output: bool = False,
    ) -> Webservice:
        """Makes a scoring service of models."""
        from trainmaster.sdk.services import deploying

        return deploying.deploy(
            workspace,
            name,
            models,
            inference_config,
            deployment_config,
            deployment_target,
            overwrite=overwrite,
            show_output=show_output,
        )

    @staticmethod
    def package(
        workspace: Workspace,
        models: builtins.list[Any],
        inference_config: Any = None,
        generate_dockerfile: bool = False,
        image_name: str | None = None,
        image_label: str | None = None,
    ) -> ModelPackage:
        """Writes models and their scoring script as a folder that runs anywhere."""
        from trainmaster.sdk.services import packaging

        return packaging.package(workspace, models, inference_config, generate_dockerfile, image_name, image_label)

    @staticmethod
    def profile(
        workspace: Workspace,
        profile_name: str,
        models: builtins.list[Any],
        inference_config: Any,
        input_dataset: Any,
        cpu: float | None = None,
        memory_in_gb: float | None = None,
        description: str | None = None,
    ) -> ModelProfile:
        """Measures what a service of models needs, with the requests in the one column of `input_dataset`."""
        from trainmaster.sdk.services import profiling

        return profiling.profile(
            workspace, profile_name, models, inference_config, input_dataset, cpu, memory_in_gb, description
        )

    @staticmethod
    def print_configuration(
        models: builtins.list[Any], inference_config: Any, deployment_config: Any, deployment_target: Any
    ) -> None:
        """Prints what `deploy` would be given."""
        shown = {
            "models": [each.id if isinstance(each, Model) else str(each) for each in models],
            "inference configuration": inference_config,
            "deployment configuration": deployment_config,
            "deployment target": getattr(deployment_target, "name", deployment_target),
        }
        for what, value in shown.items():
            print(f"{what}: {_settings(value)}")

    def _relabel(self, **changes: Any) -> None:
        self._change("models.relabel", **changes)

    def _change(self, op: str, **changes: Any) -> None:
        answer = self.workspace._call(op, name=self.name, version=self.version, **changes)
        self._record = from_plain(ModelRecord, answer)

    @property
    def _contents(self) -> Contents:
        return Contents(WorkspaceFolder(self.workspace.path).models)

    def __repr__(self) -> str:
        return (
            f"Model(workspace={self.workspace!r}, name={self.name}, id={self.id}, version={self.version}, "
            f"tags={self.tags}, properties={self.properties})"
        )


def _settings(value: Any) -> str:
    try:
        known = {key: each for key, each in vars(value).items() if each is not None and not key.startswith("_")}
    except TypeError:
        return str(value)
    return ", ".join(f"{key}={each}" for key, each in known.items()) or type(value).__name__
