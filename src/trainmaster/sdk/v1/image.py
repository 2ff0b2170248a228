"""Image and ContainerImage: v1's older way to deploy. The models, the script and its packages are stored, and the
packages are installed ahead of a deployment. No container is built.
"""

from __future__ import annotations

import builtins
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.sources import source_variables
from trainmaster.job.errors import WebserviceException, from_wire
from trainmaster.job.script.labels import check_tags, matches
from trainmaster.job.script.model_rules import as_filter
from trainmaster.sdk.run.waiting import show_now
from trainmaster.sdk.services import deploying
from trainmaster.sdk.services.configurations import LocalWebserviceDeploymentConfiguration
from trainmaster.sdk.services.following import wait_until_settled
from trainmaster.sdk.services.webservice import open_record
from trainmaster.sdk.v1.image_configuration import ContainerImageConfig, check_image_configuration
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.shared.service_spec import ImageRecord

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.workspace.workspace import Workspace

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?")


class Image:
    """An image by its name (the newest version unless one is given) or by its id `name:version`."""

    image_type = "Docker"
    image_flavor = "WebApiContainer"

    def __new__(
        cls,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Any = None,
        properties: Any = None,
        version: int | str | None = None,
        **kwargs: Any,
    ) -> Image:
        # All images are ContainerImages.
        return super().__new__(ContainerImage)

    def __init__(
        self,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Any = None,
        properties: Any = None,
        version: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        self.workspace = workspace
        record = kwargs.get("_record")
        self._record: ImageRecord = record or _find(workspace, name, id, version, tags, properties)

    @staticmethod
    def create(workspace: Workspace, name: str, models: Sequence[Any], image_config: Any) -> Image:
        """Stores the models with a scoring script and its packages, as the next version of a name."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise WebserviceException(
                f"{str(name)[:60]!r} cannot be the name of an image",
                hint="Use lower case letters, digits, and - . _ between them.",
            )
        config = check_image_configuration(image_config)
        record = ImageRecord(
            name=name,
            version=0,
            spec=deploying.make_spec(workspace, deploying.resolve_models(workspace, models), config),
            token=uuid.uuid4().hex,
            tags=check_tags(config.tags or {}),
            properties=deploying.as_properties(config.properties or {}),
            description=str(config.description or ""),
        )
        answer = workspace.connection.call(
            "images.create", image=to_plain(record), sources=source_variables(os.environ)
        )
        return Image(workspace, _record=from_plain(ImageRecord, answer))

    @staticmethod
    def list(
        workspace: Workspace,
        image_name: str | None = None,
        model_name: str | None = None,
        model_id: str | None = None,
        tags: Any = None,
        properties: Any = None,
    ) -> builtins.list[Image]:
        """The images that match all filters, newest first within each name."""
        records = _matching(workspace, image_name, tags, properties)
        found = [
            record
            for record in records
            if (model_name is None or model_name in {each.rpartition(":")[0] for each in record.spec.models})
            and (model_id is None or model_id in record.spec.models)
        ]
        return [Image(workspace, _record=record) for record in found]

    @staticmethod
    def image_configuration(*args: Any, **kwargs: Any) -> ContainerImageConfig:
        """The same as ContainerImage.image_configuration."""
        return ContainerImageConfig(*args, **kwargs)

    # What it is

    @property
    def name(self) -> str:
        """The name of the image."""
        return self._record.name

    @property
    def version(self) -> int:
        """The version of the name: 1, 2, 3, ..."""
        return self._record.version

    @property
    def id(self) -> str:
        """`name:version`."""
        return self._record.id

    @property
    def creation_state(self) -> str:
        """Running, Succeeded or Failed."""
        return self._record.state

    @property
    def creation_error(self) -> Any:
        """Why it failed."""
        return from_wire(dict(self._record.error)).message if self._record.error else None

    @property
    def image_location(self) -> str:
        """The folder with the exact list of its packages."""
        return str(self._locate()["folder"])

    @property
    def image_build_log_uri(self) -> str:
        """The log of the installation of its packages."""
        return Path(self._locate()["log"]).as_uri()

    generated_image_uri = image_location

    @property
    def created_time(self) -> datetime:
        """When it was created."""
        return datetime.fromtimestamp(self._record.created_at, UTC)

    @property
    def description(self) -> str:
        """The description of the image."""
        return self._record.description

    @property
    def tags(self) -> dict[str, Any]:
        """The tags of the image."""
        return dict(self._record.tags)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the image, which never change."""
        return dict(self._record.properties)

    @property
    def models(self) -> builtins.list[Model]:
        """The models in it."""
        from trainmaster.sdk.models.model import Model

        return [Model(self.workspace, id=each) for each in self._record.spec.models]

    def serialize(self) -> dict[str, Any]:
        """The image as a dict with v1's keys."""
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "createdTime": self.created_time.isoformat(),
            "creationState": self.creation_state,
            "description": self.description,
            "imageBuildLogUri": self.image_build_log_uri,
            "imageFlavor": self.image_flavor,
            "imageLocation": self.image_location,
            "imageType": self.image_type,
            "modelIds": [*self._record.spec.models],
            "tags": self.tags,
            "properties": self.properties,
        }

    # Waiting

    def wait_for_creation(self, show_output: bool = False) -> None:
        """Waits until its packages are installed. Raises WebserviceException if they cannot be."""
        show = show_now if show_output else None
        answer = wait_until_settled(
            self.workspace,
            ("images.follow", {"name": self.name, "version": self.version}),
            show,
            None,
        )
        self._record = from_plain(ImageRecord, answer["image"])
        if show is not None:
            show(f'Image creation operation finished for image {self.id}, operation "{self.creation_state}"\n')
        if self._record.state != "Succeeded":
            told = from_wire(dict(self._record.error))
            raise WebserviceException(f"image {self.id} failed: {told.headline}", cause=told.cause, hint=told.hint)

    def update_creation_state(self) -> None:
        """Reads the image again."""
        answer = self.workspace.connection.call("images.get", name=self.name, version=self.version)
        self._record = from_plain(ImageRecord, answer)

    @staticmethod
    def find_usable(image: Any) -> ImageRecord:
        """The record of an image, to be deployed. Refuses an image that failed."""
        if not isinstance(image, Image):
            raise WebserviceException(f"image must be an Image, not {type(image).__name__}")
        image.update_creation_state()
        if image.creation_state == "Failed":
            raise WebserviceException(
                f"image {image.id} failed and cannot be deployed",
                cause=image.creation_error or "",
                hint="Create it again.",
            )
        return image._record

    # Changes

    def update(self, tags: Mapping[str, Any]) -> None:
        """Sets all labels."""
        self._label(tags=check_tags(tags))

    def add_tags(self, tags: Mapping[str, Any]) -> None:
        """Adds labels."""
        self.update_creation_state()
        self._label(tags={**self.tags, **check_tags(tags)})

    def remove_tags(self, tags: str | Sequence[str]) -> None:
        """Removes labels by their keys."""
        self.update_creation_state()
        gone = {tags} if isinstance(tags, str) else set(tags)
        self._label(tags={key: value for key, value in self.tags.items() if key not in gone})

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Adds properties, which never change afterwards."""
        self._label(properties=deploying.as_properties(properties))

    def delete(self) -> None:
        """Deletes the image. Refused while a service uses it."""
        users = [
            each["name"] for each in self.workspace.connection.call("services.list") if each["image_id"] == self.id
        ]
        if users:
            raise WebserviceException(
                f"image {self.id} cannot be deleted: service '{users[0]}' uses it",
                hint="Delete the service first.",
            )
        self.workspace.connection.call("images.delete", name=self.name, version=self.version)

    def _label(self, **changes: Any) -> None:
        answer = self.workspace.connection.call("images.label", name=self.name, version=self.version, **changes)
        self._record = from_plain(ImageRecord, answer)

    def _locate(self) -> dict[str, str]:
        found: dict[str, str] = self.workspace.connection.call("images.locate", name=self.name, version=self.version)
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self.workspace!r}, name={self.name}, id={self.id}, tags={self.tags})"


class ContainerImage(Image):
    """v1's image for scoring: a scoring script with its packages and models."""

    @staticmethod
    def image_configuration(
        execution_script: str | os.PathLike[str],
        runtime: str,
        conda_file: str | os.PathLike[str] | None = None,
        docker_file: str | os.PathLike[str] | None = None,
        schema_file: str | os.PathLike[str] | None = None,
        dependencies: Sequence[str | os.PathLike[str]] | None = None,
        enable_gpu: bool | None = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        base_image: str | None = None,
        base_image_registry: Any = None,
        cuda_version: str | None = None,
    ) -> ContainerImageConfig:
        """The scoring script, its packages (a conda file) and further files. Settings for containers are ignored."""
        return ContainerImageConfig(**locals())

    def run(self, input_data: Any) -> Any:
        """Sends one request to a temporary service of this image."""
        name = f"try-{uuid.uuid4().hex[:12]}"
        config = LocalWebserviceDeploymentConfiguration()
        record = deploying.send(self.workspace, name, Image.find_usable(self).spec, config, image_id=self.id)
        service = open_record(self.workspace, record)
        try:
            service.wait_for_deployment()
            return service.run(input_data)
        finally:
            service.delete()


def _find(workspace: Workspace, name: Any, id: Any, version: Any, tags: Any, properties: Any) -> ImageRecord:
    if id is not None:
        name, _, version = str(id).rpartition(":")
    if not name:
        raise WebserviceException("the name or the id of the image is missing")
    found = [
        record
        for record in _matching(workspace, name, tags, properties)
        if version is None or str(record.version) == str(version)
    ]
    if not found:
        wanted = f" of version {version}" if version is not None else ""
        raise WebserviceException(f"ImageNotFound: there is no image '{str(name)[:300]}'{wanted} in this workspace")
    return found[0]


def _matching(workspace: Workspace, name: str | None, tags: Any, properties: Any) -> builtins.list[ImageRecord]:
    wanted_tags, wanted_properties = as_filter(tags, "tags"), as_filter(properties, "properties")
    records = [from_plain(ImageRecord, each) for each in workspace.connection.call("images.list", name=name)]
    return [
        record
        for record in records
        if matches(record.tags, wanted_tags) and matches(record.properties, wanted_properties)
    ]
