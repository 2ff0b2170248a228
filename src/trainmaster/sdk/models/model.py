"""Model: one version of a registered model."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import RunNotFoundException
from trainmaster.job.script.models import find_path
from trainmaster.job.script.registered_model import DatasetReferences, RegisteredModel
from trainmaster.sdk.backend.backend import ContentStore
from trainmaster.sdk.datasets import Dataset
from trainmaster.sdk.models.references import References
from trainmaster.sdk.models.registering import register_sources
from trainmaster.sdk.nouns import noun
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.snapshots.model_contents import Manifest
from trainmaster.snapshots.model_sources import files_at

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run
    from trainmaster.sdk.services.packaging import ModelPackage
    from trainmaster.sdk.services.profiling import ModelProfile
    from trainmaster.sdk.services.webservice import Webservice
    from trainmaster.sdk.workspace.workspace import Workspace


class Model(RegisteredModel):
    """A registered model: by its name (the newest version unless one is given), or by its id `name:version`.

    >>> model = Model.register(ws, "outputs/model.pkl", "mnist")      # doctest: +SKIP
    >>> Model(ws, "mnist").download("here")                           # doctest: +SKIP
    'here/model.pkl'
    """

    workspace: Workspace
    _record: ModelRecord

    # How the workspace is asked, and where files are kept

    @staticmethod
    def _caller(workspace: Workspace) -> Callable[..., Any]:
        return workspace.connection.call

    @staticmethod
    def _read(answer: Any) -> ModelRecord:
        return from_plain(ModelRecord, answer)

    @staticmethod
    def _references() -> References:
        return References()

    @classmethod
    def _keep_path(
        cls,
        workspace: Workspace,
        path: str,
        child_paths: Sequence[str] | None,
        description: dict[str, Any],
        references: DatasetReferences,
    ) -> ModelRecord:
        return register_sources(workspace, files_at(path, child_paths), description, references)

    @classmethod
    def _keep_run_files(
        cls, run: Run, path: str, description: dict[str, Any], references: DatasetReferences
    ) -> ModelRecord:
        call = run.experiment.workspace.connection.call
        answer = call("models.register_run_files", model=description, path=path, datasets=references.to_plain())
        return from_plain(ModelRecord, answer)

    def _copy_into(self, folder: str) -> None:
        self._contents.copy_model(self._digest, Path(folder))

    @property
    def _digest(self) -> str:
        """The digest of the list of its files. Those of a model that MLflow registered may have come later."""
        if not self._record.manifest:
            self._change("models.resolve")
        return self._record.manifest

    @property
    def entry(self) -> str:
        """The name of the file or folder that was registered."""
        # Known once its files are.
        return str(self._record.entry) if self._digest else ""

    # Where it comes from

    @property
    def run(self) -> Run | None:
        """The run whose files it is made of; None if there is none, or it was deleted."""
        if not self._record.run_id:
            return None
        try:
            return self.workspace.get_run(self._record.run_id)
        except RunNotFoundException:
            return None

    @property
    def datasets(self) -> dict[str, builtins.list[Any]]:
        """Purpose to the datasets that were used for it."""
        found: dict[str, builtins.list[Any]] = {}
        for use in self._record.datasets:
            found.setdefault(use.purpose, []).append(Dataset.get_by_id(self.workspace, use.dataset_id))
        return found

    @property
    def sample_input_dataset(self) -> Any:
        """A dataset that shows what goes in."""
        return self._sample(self._record.sample_input)

    @property
    def sample_output_dataset(self) -> Any:
        """A dataset that shows what comes out."""
        return self._sample(self._record.sample_output)

    def _sample(self, dataset_id: str) -> Any:
        return Dataset.get_by_id(self.workspace, dataset_id) if dataset_id else None

    # Its files

    @property
    def mime_type(self) -> str:
        """The kind of contents, in v1's words."""
        return "application/x-tar" if self.unpack else "application/octet-stream"

    @property
    def unpack(self) -> bool:
        """Whether it is a folder."""
        return any("/" in file.path for file in self.manifest().files)

    def manifest(self) -> Manifest:
        """The list of its files with their digests (SHA-256)."""
        return self._contents.read_model_list(self._digest)

    @property
    def manifest_path(self) -> str:
        """The path of that list as JSON: a service checks its model with it (`job/script/model_files.py`)."""
        return str(self._contents.model_list_path(self._digest))

    def materialise(self) -> Path:
        """Creates a folder with nothing but the entry, and returns it; its files are read-only.

        It is in the workspace, or a copy if the workspace is on a server.
        """
        return self._contents.materialise_model(self.name, self.version, self._digest)

    @property
    def path(self) -> str:
        """The file or folder itself, in the workspace, or a copy if that is on a server; read-only."""
        return str(self.materialise() / self.entry)

    def verify(self) -> None:
        """Reads all its files and raises WebserviceException if one differs from what was registered."""
        self._contents.check_model(self.name, self.version, self._digest)

    def get_sas_urls(self) -> dict[str, str]:
        """Name of each file to its address on this machine."""
        folder = self.materialise()
        return {file.path: (folder / file.path).as_uri() for file in self.manifest().files}

    @staticmethod
    def get_model_path(model_name: str, version: int | None = None, _workspace: Workspace | None = None) -> str:
        """The path of a model's file or folder: in a service, a job, or `_workspace`; else `model_name` as a path."""

        def locate(name: str, wanted: int | None) -> str:
            assert _workspace is not None
            return Model(_workspace, name, version=wanted).path

        return find_path(model_name, version, locate if _workspace is not None else None)

    # As plain data

    def serialize(self) -> dict[str, Any]:
        """The model as a dict with v1's keys."""
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
        """The model that `serialize` described."""
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
        service = noun("Webservice").from_models(
            workspace, name, models, inference_config, deployment_config, deployment_target, overwrite
        )
        if show_output:
            service.wait_for_deployment(show_output=True)
        return service

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
        return noun("ModelPackage").create(
            workspace, models, inference_config, generate_dockerfile, image_name, image_label
        )

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
        return noun("ModelProfile").create(
            workspace, profile_name, models, inference_config, input_dataset, cpu, memory_in_gb, description
        )

    @staticmethod
    def print_configuration(
        models: builtins.list[Any], inference_config: Any, deployment_config: Any, deployment_target: Any
    ) -> None:
        """Prints the arguments of `deploy`."""
        shown = {
            "models": [each.id if isinstance(each, Model) else str(each) for each in models],
            "inference configuration": inference_config,
            "deployment configuration": deployment_config,
            "deployment target": getattr(deployment_target, "name", deployment_target),
        }
        for what, value in shown.items():
            print(f"{what}: {_settings(value)}")

    @property
    def _contents(self) -> ContentStore:
        return self.workspace.backend.contents


def _settings(value: Any) -> str:
    try:
        known = {key: each for key, each in vars(value).items() if each is not None and not key.startswith("_")}
    except TypeError:
        return str(value)
    return ", ".join(f"{key}={each}" for key, each in known.items()) or type(value).__name__
