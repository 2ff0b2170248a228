"""The results of `deploy_configuration(...)` for v1's services in Azure, checked as v1 checked them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.services.configurations import (
    MOST_REPLICAS,
    WebserviceDeploymentConfiguration,
    check_positive,
    check_whole,
)


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
    """v1's service in a Kubernetes cluster, by default with keys; it may have replicas."""

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
            check_whole(name, getattr(self, name), 1, MOST_REPLICAS)
        check_scaling(
            self.num_replicas, self.autoscale_enabled, self.autoscale_min_replicas, self.autoscale_max_replicas
        )
        check_token_auth(self.noted.get("token_auth_enabled"), self.auth_enabled)
        self.replicas = self.num_replicas or self.autoscale_min_replicas or self.replicas

    @property
    def wants_autoscale(self) -> bool:
        """Whether the number of replicas shall follow the load."""
        return bool(self.autoscale_enabled or self.autoscale_max_replicas is not None)


def check_scaling(count: Any, enabled: Any, least: Any, most: Any) -> None:
    """v1's rule: a fixed number of replicas or a range, not both."""
    if enabled and count is not None:
        raise WebserviceException(
            "num_replicas cannot be given together with autoscale_enabled=True", hint="Leave one of them out."
        )
    if enabled is False and (least is not None or most is not None):
        raise WebserviceException(
            "autoscale_min_replicas and autoscale_max_replicas have no effect with autoscale_enabled=False",
            hint="Give num_replicas instead.",
        )
    if least is not None and most is not None and least > most:
        raise WebserviceException(f"autoscale_min_replicas={least} is more than autoscale_max_replicas={most}")


def check_token_auth(token: Any, auth: Any) -> None:
    """Refuses tokens, which Azure issued."""
    if not token:
        return
    if auth:
        raise WebserviceException("auth_enabled and token_auth_enabled cannot both be set", hint="Use auth_enabled.")
    raise WebserviceException("Trainmaster has no tokens", hint="Use auth_enabled=True and the keys of get_keys().")


def check_tls(noted: Mapping[str, Any]) -> None:
    """Checks v1's settings for TLS, and refuses TLS, which services do not support."""
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
        "services support HTTP only",
        hint="Use a proxy with the certificate in front of it (nginx, Caddy), and leave ssl_enabled out.",
    )
