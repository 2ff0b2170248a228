"""The results of `deploy_configuration(...)`: v1's settings of a service, checked as v1 checked them.

Some decide how the service runs. The others have no effect here: they are recorded, and `serialize()` shows them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from trainmaster.job.errors import WebserviceException
from trainmaster.shared.service_spec import ComputeType

_KEY = re.compile(r"[A-Za-z0-9+/=_.~-]{8,256}")
MOST_REPLICAS = 64


@dataclass
class WebserviceDeploymentConfiguration:
    """The settings that all kinds of services share."""

    compute_type: ClassVar[ComputeType]
    auth_by_default: ClassVar[bool] = False

    tags: Mapping[str, Any] | None = None
    properties: Mapping[str, Any] | None = None
    description: str | None = None
    auth_enabled: bool | None = None
    primary_key: str | None = None
    secondary_key: str | None = None
    port: int | None = None
    host: str | None = None
    replicas: int | None = None
    scoring_timeout_ms: int | None = None
    cors_origins: Any = None
    max_batch_size: int | None = None
    max_batch_wait_ms: float | None = None
    max_body_mb: float | None = None
    noted: dict[str, Any] = field(default_factory=dict)
    """v1's other parameters, which have no effect."""

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Self:
        """A configuration from all parameters by name. Those without a field go to `noted`."""
        counting = {each.name for each in fields(cls)}
        return cls(
            **{name: value for name, value in given.items() if name in counting},
            noted={name: value for name, value in given.items() if name not in counting},
        )

    def __post_init__(self) -> None:
        self.validate_configuration()

    def validate_configuration(self) -> None:
        """Refuses settings that cannot be used."""
        for name in ("tags", "properties"):
            given: object = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                raise WebserviceException(f"{name} must be a dict, not {type(given).__name__}")
        check_whole("port", self.port, 1, 65535)
        check_whole("replicas", self.replicas, 1, MOST_REPLICAS)
        check_whole("scoring_timeout_ms", self.scoring_timeout_ms, 1, 24 * 3600 * 1000)
        check_whole("max_batch_size", self.max_batch_size, 1, 4096)
        check_positive("max_body_mb", self.max_body_mb)
        if self.max_batch_wait_ms is not None and not _is_number(self.max_batch_wait_ms, 0.0):
            raise WebserviceException(f"max_batch_wait_ms must not be negative, not {self.max_batch_wait_ms!r}")
        self._check_keys()
        self._check_origins()

    def _check_keys(self) -> None:
        for name in ("primary_key", "secondary_key"):
            check_key(name, getattr(self, name))
        if self.auth_enabled is False and (self.primary_key or self.secondary_key):
            raise WebserviceException(
                "keys have no effect with auth_enabled=False", hint="Leave out the keys, or auth_enabled=False."
            )

    def _check_origins(self) -> None:
        origins = self.cors_origins
        if origins is not None and (
            isinstance(origins, str) or not all(isinstance(each, str) and each.strip() for each in origins)
        ):
            raise WebserviceException(
                f"cors_origins must be a list such as ['https://example.org'] or ['*'], not {origins!r}"
            )

    @property
    def wants_keys(self) -> bool:
        """Whether requests need a key: as auth_enabled says, else if a key was given."""
        if self.auth_enabled is not None:
            return self.auth_enabled
        return self.auth_by_default or bool(self.primary_key or self.secondary_key)

    def for_spec(self) -> dict[str, Any]:
        """The given settings that are part of a ServiceSpec."""
        given = {
            "replicas": self.replicas,
            "timeout_ms": self.scoring_timeout_ms,
            "cors_origins": None if self.cors_origins is None else tuple(self.cors_origins),
            "max_batch_size": self.max_batch_size,
            "max_batch_wait_ms": None if self.max_batch_wait_ms is None else float(self.max_batch_wait_ms),
            "max_body_mb": None if self.max_body_mb is None else float(self.max_body_mb),
        }
        return {key: value for key, value in given.items() if value is not None}

    def settings(self) -> dict[str, Any]:
        """The given settings without keys, for the record."""
        hidden = ("primary_key", "secondary_key", "noted", "tags", "properties", "description")
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in hidden}
        return {key: value for key, value in {**own, **self.noted}.items() if value is not None}

    def print_deploy_configuration(self) -> None:
        """Prints the given settings."""
        for key, value in {"computeType": self.compute_type, **self.settings()}.items():
            print(f"{key}: {value}")


@dataclass
class LocalWebserviceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """A service without keys, for trying out."""

    compute_type = "Local"


def check_key(name: str, key: Any) -> None:
    """Refuses a key that could not be sent in a header."""
    if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise WebserviceException(
            f"{name} cannot be used as a key", hint="Use 8 to 256 letters, digits and the characters + / = _ . ~ -"
        )


def check_positive(name: str, value: Any) -> None:
    """Refuses what is not a number above 0; None is accepted."""
    if value is not None and not (_is_number(value, 0.0) and value > 0):
        raise WebserviceException(f"{name} must be a number above 0, not {value!r}")


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Refuses what is not a whole number in the range; None is accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WebserviceException(f"{name} must be a whole number from {least} to {most}, not {value!r}")


def _is_number(value: Any, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < float("inf")
