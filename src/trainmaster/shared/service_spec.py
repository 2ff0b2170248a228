"""What a scoring service is, as plain data: its description, its record, and what stands behind v1's word "image"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Any, Literal

from trainmaster.job.errors import WebserviceException
from trainmaster.shared.job_spec import EnvironmentSpec

ComputeType = Literal["Local", "ACI", "AKS"]

_NAME = re.compile(r"[a-z](?:[a-z0-9-]{1,30})[a-z0-9]")


class ServiceState(StrEnum):
    """The states of a service, by their v1 names."""

    TRANSITIONING = "Transitioning"
    """The last requested version is being prepared."""
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    """It does not serve although it should; the dispatcher keeps trying to restart it."""
    FAILED = "Failed"
    """The last requested version failed. The previous one keeps serving."""
    DELETING = "Deleting"
    """It is being deleted and is not listed any more."""


@dataclass(frozen=True)
class ServiceCode:
    """The folder a scoring script lives in: a snapshot, and where it was taken from."""

    snapshot_id: str
    entry_script: str
    """Relative to the snapshot."""
    source_directory: str = ""
    """Where the folder was taken from, for `reload`; empty for single files."""
    files: tuple[str, ...] = ()
    """Where single files were taken from."""

    @property
    def folder_name(self) -> str:
        """The name of the source folder: as in v1, the script works in the folder that holds it. Empty for files.

        >>> ServiceCode("id", "x/score.py", source_directory="/home/me/src").folder_name
        'src'
        """
        name = PurePath(self.source_directory).name
        # The models lie under the first; the other is no folder of its own.
        return "" if name in ("azureml-models", "..") else name

    @property
    def is_ready_made(self) -> bool:
        """Whether it is the script of a kind of model, made for one model: another model needs another."""
        return not (self.source_directory or self.files)


@dataclass(frozen=True)
class ServiceSpec:
    """Everything needed to serve: what an update replaces as a whole."""

    code: ServiceCode
    models: tuple[str, ...] = ()
    """`name:version` of each."""
    environment: EnvironmentSpec = field(default_factory=EnvironmentSpec)
    environment_name: str = ""
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    inherited_variables: Mapping[str, str] = field(default_factory=dict)
    replicas: int = 1
    auth_enabled: bool = False
    timeout_ms: int = 60_000
    max_body_mb: float = 100.0
    cors_origins: tuple[str, ...] = ()
    max_batch_size: int = 1
    """More than 1: requests that wait at the same time are given to `run` together."""
    max_batch_wait_ms: float = 5.0


@dataclass(frozen=True)
class ServiceRecord:
    """One service, as the store has it."""

    name: str
    compute_type: ComputeType
    spec: ServiceSpec
    """The last requested specification."""
    token: str
    """Identifies the request. Repeating it has no effect."""
    state: ServiceState = ServiceState.TRANSITIONING
    generation: int = 1
    """The number of the last request; each generation has its own folder."""
    served: ServiceSpec | None = None
    serving: int = 0
    """The generation that answers requests; 0 for none yet."""
    port: int = 0
    """Chosen once; 0 until then."""
    host: str = "127.0.0.1"
    """Where it listens on this machine; in a cluster, the address for users as a URL without a port."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The deployment configuration as it was given, v1's parameters that mean nothing here included."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    image_id: str = ""
    error: Mapping[str, str] = field(default_factory=dict)
    """Why the last deployment failed, as `AzureMLException.to_wire` has it; empty where it did not."""
    warnings: tuple[str, ...] = ()
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs in a cluster. Only its dispatcher reaches it for sure."""
        return bool(self.port) and "://" in self.host


@dataclass(frozen=True)
class ImageRecord:
    """What v1 built an image of: code, packages and models together. Here the description alone is kept."""

    name: str
    version: int
    spec: ServiceSpec
    token: str
    state: str = "Running"
    """v1's `creation_state`: Running while the packages are installed, then Succeeded or Failed."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    error: Mapping[str, str] = field(default_factory=dict)
    created_at: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.name}:{self.version}"


def check_service_name(name: Any) -> None:
    """Refuses what v1 refused as the name of a service.

    >>> check_service_name("my-service-1")
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WebserviceException(
            f"{str(name)[:60]!r} cannot be the name of a service",
            hint="Use 3 to 32 lower case letters, digits and dashes: a letter first, a letter or digit last.",
        )
