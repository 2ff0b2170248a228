"""What `deploy_configuration(...)` of each kind of service gives: v1's settings, checked as v1 checked them.

Those that mean something here decide how the service runs; the others are kept with it and shown by `serialize()`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from trainmaster.job.errors import WebserviceException
from trainmaster.shared.notices import warn
from trainmaster.shared.service_spec import ComputeType

_KEY = re.compile(r"[A-Za-z0-9+/=_.~-]{8,256}")
_MOST_REPLICAS = 64


@dataclass
class WebserviceDeploymentConfiguration:
    """What all kinds share."""

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
    """v1's other parameters: they change nothing here."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Of all parameters by their names: those that have a field count, the others are noted."""
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
        _check_whole("port", self.port, 1, 65535)
        _check_whole("replicas", self.replicas, 1, _MOST_REPLICAS)
        _check_whole("scoring_timeout_ms", self.scoring_timeout_ms, 1, 24 * 3600 * 1000)
        _check_whole("max_batch_size", self.max_batch_size, 1, 4096)
        check_positive("max_body_mb", self.max_body_mb)
        if self.max_batch_wait_ms is not None and not _is_number(self.max_batch_wait_ms, 0.0):
            raise WebserviceException(f"max_batch_wait_ms must not be negative, not {self.max_batch_wait_ms!r}")
        self._check_keys()
        self._check_origins()

    def _check_keys(self) -> None:
        for name in ("primary_key", "secondary_key"):
            check_key(name, getattr(self, name))
        if self.auth_enabled is False and (self.primary_key or self.secondary_key):
            raise WebserviceException("keys are of no use with auth_enabled=False", hint="Leave one of both out.")

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
        """Whether requests need a key; who gives one wants it to count."""
        if self.auth_enabled is not None:
            return self.auth_enabled
        return self.auth_by_default or bool(self.primary_key or self.secondary_key)

    def for_spec(self) -> dict[str, Any]:
        """The settings that are part of a ServiceSpec, as far as they were given."""
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
        """What was given, without keys: for the record."""
        hidden = ("primary_key", "secondary_key", "noted", "tags", "properties", "description")
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in hidden}
        return {key: value for key, value in {**own, **self.noted}.items() if value is not None}

    def print_deploy_configuration(self) -> None:
        """Prints what was given."""
        for key, value in {"computeType": self.compute_type, **self.settings()}.items():
            print(f"{key}: {value}")


@dataclass
class LocalWebserviceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """A service for trying out: no keys, a port of your choice."""

    compute_type = "Local"


@dataclass
class AciServiceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """v1's service in a container instance."""

    compute_type = "ACI"

    cpu_cores: float | None = None
    memory_gb: float | None = None

    def validate_configuration(self) -> None:
        super().validate_configuration()
        check_positive("cpu_cores", self.cpu_cores)
        check_positive("memory_gb", self.memory_gb)
        check_tls(self.noted)


@dataclass
class AksServiceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """v1's service in a Kubernetes cluster: keys are asked for unless that is turned off, and there may be replicas."""

    compute_type = "AKS"
    auth_by_default = True

    cpu_cores: float | None = None
    memory_gb: float | None = None
    num_replicas: int | None = None
    autoscale_enabled: bool | None = None
    autoscale_min_replicas: int | None = None
    autoscale_max_replicas: int | None = None

    def validate_configuration(self) -> None:
        super().validate_configuration()
        check_positive("cpu_cores", self.cpu_cores)
        check_positive("memory_gb", self.memory_gb)
        check_positive("gpu_cores", self.noted.get("gpu_cores"))
        for name in ("num_replicas", "autoscale_min_replicas", "autoscale_max_replicas"):
            _check_whole(name, getattr(self, name), 1, _MOST_REPLICAS)
        check_scaling(
            self.num_replicas, self.autoscale_enabled, self.autoscale_min_replicas, self.autoscale_max_replicas
        )
        check_token_auth(self.noted.get("token_auth_enabled"), self.auth_enabled)
        self.replicas = self.num_replicas or self.autoscale_min_replicas or self.replicas


def check_scaling(count: Any, enabled: Any, least: Any, most: Any) -> None:
    """v1's rules: a fixed number or a range, not both."""
    if enabled and count is not None:
        raise WebserviceException(
            "num_replicas cannot be given together with autoscale_enabled=True", hint="Leave one of them out."
        )
    if enabled is False and (least is not None or most is not None):
        raise WebserviceException(
            "autoscale_min_replicas and autoscale_max_replicas mean nothing with autoscale_enabled=False",
            hint="Give num_replicas instead.",
        )
    if least is not None and most is not None and least > most:
        raise WebserviceException(f"autoscale_min_replicas={least} is more than autoscale_max_replicas={most}")
    if enabled or most is not None:
        warn(
            "replicas do not come and go by load here: the service has autoscale_min_replicas of them "
            "(default 1); num_replicas says it plainly"
        )


def check_token_auth(token: Any, auth: Any) -> None:
    """Tokens were handed out by Azure's directory."""
    if not token:
        return
    if auth:
        raise WebserviceException("auth_enabled and token_auth_enabled cannot both be set", hint="Keys work here.")
    raise WebserviceException("there are no tokens here", hint="Use auth_enabled=True and the keys of get_keys().")


def check_tls(noted: Mapping[str, Any]) -> None:
    """TLS needs a certificate, its key and a name, as in v1; it is not spoken by services here."""
    parts = {name: noted.get(name) for name in ("ssl_cert_pem_file", "ssl_key_pem_file", "ssl_cname")}
    if not noted.get("ssl_enabled"):
        return
    missing = [name for name, value in parts.items() if not value]
    if missing:
        raise WebserviceException(f"ssl_enabled=True needs {', '.join(missing)}")
    for name in ("ssl_cert_pem_file", "ssl_key_pem_file"):
        if not os.path.isfile(str(parts[name])):
            raise WebserviceException(f"{name} {str(parts[name])!r} does not exist")
    raise WebserviceException(
        "a service here speaks HTTP only",
        hint="Put a proxy that has the certificate before it (nginx, Caddy), and leave ssl_enabled out.",
    )


def check_key(name: str, key: Any) -> None:
    """Refuses what could not be sent as a key."""
    if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise WebserviceException(
            f"{name} cannot be used as a key", hint="Use 8 to 256 letters, digits and the signs + / = _ . ~ -"
        )


def check_positive(name: str, value: Any) -> None:
    """A number above 0, if there is one."""
    if value is not None and not (_is_number(value, 0.0) and value > 0):
        raise WebserviceException(f"{name} must be a number above 0, not {value!r}")


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WebserviceException(f"{name} must be a whole number from {least} to {most}, not {value!r}")


def _is_number(value: Any, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < float("inf")
