"""AksWebservice: v1's service in a Kubernetes cluster; here on this machine, with keys unless they are turned off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.serving.aci import tell_of_collection
from trainmaster.serving.configurations import AksServiceDeploymentConfiguration
from trainmaster.serving.webservice import Webservice


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
        tell_of_collection(collect_model_data)
        noted = {
            "autoscale_refresh_seconds": autoscale_refresh_seconds,
            "autoscale_target_utilization": autoscale_target_utilization,
            "collect_model_data": collect_model_data,
            "enable_app_insights": enable_app_insights,
            "replica_max_concurrent_requests": replica_max_concurrent_requests,
            "max_request_wait_time": max_request_wait_time,
            "gpu_cores": gpu_cores,
            "period_seconds": period_seconds,
            "initial_delay_seconds": initial_delay_seconds,
            "timeout_seconds": timeout_seconds,
            "success_threshold": success_threshold,
            "failure_threshold": failure_threshold,
            "namespace": namespace,
            "token_auth_enabled": token_auth_enabled,
            "compute_target_name": compute_target_name,
            "cpu_cores_limit": cpu_cores_limit,
            "memory_gb_limit": memory_gb_limit,
            "blobfuse_enabled": blobfuse_enabled,
        }
        return AksServiceDeploymentConfiguration(
            autoscale_enabled=autoscale_enabled,
            autoscale_min_replicas=autoscale_min_replicas,
            autoscale_max_replicas=autoscale_max_replicas,
            num_replicas=num_replicas,
            auth_enabled=auth_enabled,
            cpu_cores=cpu_cores,
            memory_gb=memory_gb,
            scoring_timeout_ms=scoring_timeout_ms,
            primary_key=primary_key,
            secondary_key=secondary_key,
            tags=tags,
            properties=properties,
            description=description,
            port=port,
            host=host,
            cors_origins=cors_origins,
            max_batch_size=max_batch_size,
            max_batch_wait_ms=max_batch_wait_ms,
            max_body_mb=max_body_mb,
            noted=noted,
        )

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
        config = AksWebservice.deploy_configuration(
            autoscale_enabled=autoscale_enabled,
            autoscale_min_replicas=autoscale_min_replicas,
            autoscale_max_replicas=autoscale_max_replicas,
            autoscale_refresh_seconds=autoscale_refresh_seconds,
            autoscale_target_utilization=autoscale_target_utilization,
            collect_model_data=collect_model_data,
            auth_enabled=auth_enabled,
            cpu_cores=cpu_cores,
            memory_gb=memory_gb,
            enable_app_insights=enable_app_insights,
            scoring_timeout_ms=scoring_timeout_ms,
            replica_max_concurrent_requests=replica_max_concurrent_requests,
            max_request_wait_time=max_request_wait_time,
            num_replicas=num_replicas,
            gpu_cores=gpu_cores,
            period_seconds=period_seconds,
            initial_delay_seconds=initial_delay_seconds,
            timeout_seconds=timeout_seconds,
            success_threshold=success_threshold,
            failure_threshold=failure_threshold,
            namespace=namespace,
            token_auth_enabled=token_auth_enabled,
            cpu_cores_limit=cpu_cores_limit,
            memory_gb_limit=memory_gb_limit,
        )
        self._change(
            image=image,
            tags=tags,
            properties=properties,
            description=description,
            models=models,
            inference_config=inference_config,
            spec={"auth_enabled": auth_enabled, **config.for_spec()},
            settings=config.settings(),
        )
