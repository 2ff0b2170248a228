"""AksWebservice: v1's service in a Kubernetes cluster; here on this machine, with keys unless they are turned off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.services.configurations import (
    MOST_REPLICAS,
    WebserviceDeploymentConfiguration,
    check_positive,
    check_whole,
)
from trainmaster.sdk.services.webservice import Webservice
from trainmaster.sdk.v1.aci import tell_of_collection
from trainmaster.shared.notices import warn

_NO_SETTINGS = ("image", "models", "inference_config", "tags", "properties", "description")
"""What `update` changes beside the settings that `deploy_configuration` knows."""


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
            check_whole(name, getattr(self, name), 1, MOST_REPLICAS)
        check_scaling(
            self.num_replicas, self.autoscale_enabled, self.autoscale_min_replicas, self.autoscale_max_replicas
        )
        check_token_auth(self.noted.get("token_auth_enabled"), self.auth_enabled)
        self.replicas = self.num_replicas or self.autoscale_min_replicas or self.replicas


class AksWebservice(Webservice):
    """A service as v1 had it in Azure Kubernetes Service."""

    _compute_type = "AKS"

    @staticmethod
    def deploy_configuration(
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        auth_enabled: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        enable_app_insights: bool | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        primary_key: str | None = None,
        secondary_key: str | None = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        namespace: str | None = None,
        token_auth_enabled: bool | None = None,
        compute_target_name: str | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
        blobfuse_enabled: bool | None = None,
        *,
        port: int | None = None,
        host: str | None = None,
        cors_origins: Sequence[str] | None = None,
        max_batch_size: int | None = None,
        max_batch_wait_ms: float | None = None,
        max_body_mb: float | None = None,
    ) -> AksServiceDeploymentConfiguration:
        """v1's parameters. `num_replicas` (or `autoscale_min_replicas`) and `scoring_timeout_ms` count; probes, CPU,
        memory and what is of the cluster are noted. Ours are those of AciWebservice.
        """
        config = AksServiceDeploymentConfiguration.from_parameters(locals())
        tell_of_collection(collect_model_data)
        return config

    def run(self, input_data: Any) -> Any:
        """Sends a request with the primary key; what `run` of the script returned."""
        return self._ask(input_data)

    def update(  # type: ignore[override]
        self,
        image: Any = None,
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        auth_enabled: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        enable_app_insights: bool | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        models: Sequence[Any] | None = None,
        inference_config: Any = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        namespace: str | None = None,
        token_auth_enabled: bool | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Other models, another script or other settings, at the same address and without a pause."""
        given = dict(locals())
        del given["self"], given["kwargs"]
        changes = {name: given.pop(name) for name in _NO_SETTINGS}
        config = AksWebservice.deploy_configuration(**given)
        self._change(**changes, spec={"auth_enabled": auth_enabled, **config.for_spec()}, settings=config.settings())


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
