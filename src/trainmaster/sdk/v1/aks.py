"""AksWebservice: v1's service in a Kubernetes cluster; without a cluster it runs on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.sdk.services.webservice import Webservice
from trainmaster.sdk.v1.aci import tell_of_collection
from trainmaster.sdk.v1.service_configurations import AksServiceDeploymentConfiguration

_NO_SETTINGS = ("image", "models", "inference_config", "tags", "properties", "description")
"""Parameters of `update` that are not parameters of `deploy_configuration`."""


class AksWebservice(Webservice):
    """v1's service in a Kubernetes cluster."""

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
        """v1's parameters. On a cluster, replicas, autoscaling, CPU, memory, GPUs and probes are used; on this machine
        `num_replicas` (or `autoscale_min_replicas`) and `scoring_timeout_ms`, and the others are noted. Trainmaster
        adds the same parameters as for AciWebservice.
        """
        config = AksServiceDeploymentConfiguration.from_parameters(locals())
        tell_of_collection(collect_model_data)
        return config

    def run(self, input_data: Any) -> Any:
        """Sends a request with the primary key and returns the result of the script's `run`."""
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
        """Changes models, script or settings. The address stays the same, and there is no downtime."""
        given = dict(locals())
        del given["self"], given["kwargs"]
        changes = {name: given.pop(name) for name in _NO_SETTINGS}
        config = AksWebservice.deploy_configuration(**given)
        self._change(**changes, spec={"auth_enabled": auth_enabled, **config.for_spec()}, settings=config.settings())
