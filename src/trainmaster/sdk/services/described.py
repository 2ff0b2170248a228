"""The part of a service that comes from its record, without asking the dispatcher."""

from __future__ import annotations

import builtins
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import from_wire
from trainmaster.sdk.nouns import noun
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.workspace.workspace import Workspace


class Described:
    """The attributes of a Webservice that come from its record, as it was when this object last read it."""

    workspace: Workspace
    name: str
    _record: ServiceRecord

    @property
    def state(self) -> str:
        """Transitioning, Healthy, Unhealthy or Failed, as it was when this object last read it."""
        return str(self._record.state)

    @property
    def compute_type(self) -> str:
        """ACI, AKS or Local, as it was requested."""
        return self._record.compute_type

    @property
    def error(self) -> Any:
        """Why its last deployment failed, as a dict with `code` and `message`; None if it did not."""
        if not self._record.error:
            return None
        told = from_wire(dict(self._record.error))
        return {"code": type(told).__name__, "message": told.message, "statusCode": 400}

    @property
    def scoring_uri(self) -> str | None:
        """The address for requests; None while the service has no address."""
        return f"{self._address}/score" if self._address else None

    @property
    def swagger_uri(self) -> str | None:
        """The OpenAPI description of the service."""
        return f"{self._address}/swagger.json" if self._address else None

    @property
    def _address(self) -> str:
        record = self._record
        if record.is_elsewhere:
            usual = {"http": 80, "https": 443}[record.host.partition("://")[0]]
            return record.host if record.port == usual else f"{record.host}:{record.port}"
        return f"http://{self.workspace.backend.host_name(record.host)}:{record.port}" if record.port else ""

    @property
    def auth_enabled(self) -> bool:
        """Whether requests need a key."""
        return self._spec.auth_enabled

    @property
    def token_auth_enabled(self) -> bool:
        """Always False: services have keys, not tokens."""
        return False

    @property
    def tags(self) -> dict[str, Any]:
        """The tags of the service."""
        return dict(self._record.tags)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the service, which never change."""
        return dict(self._record.properties)

    @property
    def description(self) -> str:
        """The description of the service."""
        return self._record.description

    @property
    def created_time(self) -> datetime:
        """When it was first deployed."""
        return datetime.fromtimestamp(self._record.created_at, UTC)

    @property
    def updated_time(self) -> datetime:
        """When it last changed."""
        return datetime.fromtimestamp(self._record.updated_at, UTC)

    @property
    def models(self) -> builtins.list[Model]:
        """The models it serves."""
        from trainmaster.sdk.models.model import Model

        return [Model(self.workspace, id=each) for each in self._spec.models]

    @property
    def image_id(self) -> str | None:
        """The image it was created from, in v1's older way to deploy."""
        return self._record.image_id or None

    @property
    def image(self) -> Any:
        """The image it was created from, in v1's older way to deploy."""
        return noun("Image")(self.workspace, id=self._record.image_id) if self._record.image_id else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings, such as a model file that changed on disk."""
        return self._record.warnings

    @property
    def folder(self) -> Path:
        """The folder of its files. An error for a workspace on a server."""
        return self.workspace.backend.folder.service(self.name).path

    def serialize(self) -> dict[str, Any]:
        """The service as a dict with v1's keys."""
        spec = self._spec
        return {
            "name": self.name,
            "computeType": self.compute_type,
            "state": self.state,
            "scoringUri": self.scoring_uri,
            "swaggerUri": self.swagger_uri,
            "authEnabled": self.auth_enabled,
            "createdTime": self.created_time.isoformat(),
            "updatedTime": self.updated_time.isoformat(),
            "description": self.description,
            "tags": self.tags,
            "properties": self.properties,
            "error": self.error,
            "imageId": self.image_id,
            "modelIds": [*spec.models],
            "numReplicas": spec.replicas,
            "scoringTimeoutMs": spec.timeout_ms,
            "settings": dict(self._record.settings),
            "warnings": [*self.warnings],
        }

    @property
    def _spec(self) -> ServiceSpec:
        """The description of what is served now, or of what will be served first."""
        return self._record.served or self._record.spec

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(workspace={self.workspace!r}, name={self.name}, image_id={self.image_id}, "
            f"compute_type={self.compute_type}, state={self.state}, scoring_uri={self.scoring_uri}, "
            f"tags={self.tags}, properties={self.properties})"
        )
