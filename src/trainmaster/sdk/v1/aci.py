"""AciWebservice: v1's service in a container instance. Here it runs on this machine, by default without keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.sdk.services.webservice import Webservice
from trainmaster.sdk.v1.service_configurations import AciServiceDeploymentConfiguration, check_tls
from trainmaster.shared.notices import warn


class AciWebservice(Webservice):
    """v1's service in Azure Container Instances."""

    _compute_type = "ACI"

    @staticmethod
    def deploy_configuration(
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        location: str | None = None,
        auth_enabled: bool | None = None,
        ssl_enabled: bool | None = None,
        enable_app_insights: bool | None = None,
        ssl_cert_pem_file: str | None = None,
        ssl_key_pem_file: str | None = None,
        ssl_cname: str | None = None,
        dns_name_label: str | None = None,
        primary_key: str | None = None,
        secondary_key: str | None = None,
        collect_model_data: bool | None = None,
        cmk_vault_base_url: str | None = None,
        cmk_key_name: str | None = None,
        cmk_key_version: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        *,
        port: int | None = None,
        host: str | None = None,
        replicas: int | None = None,
        scoring_timeout_ms: int | None = None,
        cors_origins: Sequence[str] | None = None,
        max_batch_size: int | None = None,
        max_batch_wait_ms: float | None = None,
        max_body_mb: float | None = None,
    ) -> AciServiceDeploymentConfiguration:
        """v1's parameters; those of Azure (location, network, vault keys) are only noted, and so are CPU and memory.

        Trainmaster adds `port` and `host` (default: a free port, on this machine only), `replicas`,
        `scoring_timeout_ms`, `cors_origins`, `max_batch_size` with `max_batch_wait_ms`, and `max_body_mb`.
        """
        config = AciServiceDeploymentConfiguration.from_parameters(locals())
        tell_of_collection(collect_model_data)
        return config

    def run(self, input_data: Any) -> Any:
        """Sends a request, with the primary key if there are keys, and returns the result of the script's `run`."""
        return self._ask(input_data)

    def update(  # type: ignore[override]
        self,
        image: Any = None,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
        auth_enabled: bool | None = None,
        ssl_enabled: bool | None = None,
        ssl_cert_pem_file: str | None = None,
        ssl_key_pem_file: str | None = None,
        ssl_cname: str | None = None,
        enable_app_insights: bool | None = None,
        models: Sequence[Any] | None = None,
        inference_config: Any = None,
        *,
        replicas: int | None = None,
    ) -> None:
        """Changes models, script or settings. The address stays the same, and there is no downtime."""
        check_tls(locals())
        config = AciServiceDeploymentConfiguration(replicas=replicas)
        self._change(
            image=image,
            tags=tags,
            properties=properties,
            description=description,
            models=models,
            inference_config=inference_config,
            spec={"auth_enabled": auth_enabled, **config.for_spec()},
            settings={"enable_app_insights": enable_app_insights},
        )


def tell_of_collection(collect: bool | None) -> None:
    """Warns that requests and answers are not recorded."""
    if collect:
        warn("collect_model_data: requests and answers are not recorded; record them in the scoring script")
