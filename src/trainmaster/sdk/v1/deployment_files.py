"""The JSON files of `az ml model deploy`: an inference configuration and a deployment configuration, with v1's keys."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.environment import definition_file
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.services.configurations import WebserviceDeploymentConfiguration
from trainmaster.sdk.services.inference_config import InferenceConfig
from trainmaster.sdk.services.local import LocalWebservice
from trainmaster.sdk.v1.aci import AciWebservice
from trainmaster.sdk.v1.aks import AksWebservice

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_INFERENCE = {
    "entryScript": "entry_script",
    "runtime": "runtime",
    "condaFile": "conda_file",
    "extraDockerfileSteps": "extra_docker_file_steps",
    "sourceDirectory": "source_directory",
    "enableGpu": "enable_gpu",
    "description": "description",
    "baseImage": "base_image",
    "baseImageRegistry": "base_image_registry",
    "cudaVersion": "cuda_version",
}
_COMMON = {
    "authEnabled": "auth_enabled",
    "tags": "tags",
    "properties": "properties",
    "description": "description",
    "primaryKey": "primary_key",
    "secondaryKey": "secondary_key",
    "appInsightsEnabled": "enable_app_insights",
    "port": "port",
    "host": "host",
    "corsOrigins": "cors_origins",
    "maxBatchSize": "max_batch_size",
    "maxBatchWaitMs": "max_batch_wait_ms",
    "scoringTimeoutMs": "scoring_timeout_ms",
}
_RESOURCES = {"cpu": "cpu_cores", "memoryInGB": "memory_gb"}
_OF_KIND: Mapping[str, Mapping[str, str]] = {
    "local": {
        **{key: _COMMON[key] for key in ("port", "host", "corsOrigins", "maxBatchSize", "maxBatchWaitMs")},
        "scoringTimeoutMs": "scoring_timeout_ms",
        "numReplicas": "replicas",
    },
    "aci": {
        **_COMMON,
        "numReplicas": "replicas",
        "location": "location",
        "sslEnabled": "ssl_enabled",
        "sslCertificate": "ssl_cert_pem_file",
        "sslKey": "ssl_key_pem_file",
        "cname": "ssl_cname",
        "dnsNameLabel": "dns_name_label",
    },
    "aks": {
        **_COMMON,
        "numReplicas": "num_replicas",
        "maxConcurrentRequestsPerContainer": "replica_max_concurrent_requests",
        "maxQueueWaitMs": "max_request_wait_time",
        "namespace": "namespace",
        "gpuCores": "gpu_cores",
        "tokenAuthEnabled": "token_auth_enabled",
    },
}
_SCALING = {
    "autoscaleEnabled": "autoscale_enabled",
    "minReplicas": "autoscale_min_replicas",
    "maxReplicas": "autoscale_max_replicas",
    "refreshPeriodInSeconds": "autoscale_refresh_seconds",
    "targetUtilization": "autoscale_target_utilization",
}
_PROBES = {
    "periodSeconds": "period_seconds",
    "initialDelaySeconds": "initial_delay_seconds",
    "timeoutSeconds": "timeout_seconds",
    "successThreshold": "success_threshold",
    "failureThreshold": "failure_threshold",
}
_MAKERS: Mapping[str, Any] = {
    "local": LocalWebservice.deploy_configuration,
    "aci": AciWebservice.deploy_configuration,
    "aks": AksWebservice.deploy_configuration,
}


def read_inference_config(
    path: str | os.PathLike[str], workspace: Workspace | None = None, changes: Mapping[str, Any] | None = None
) -> InferenceConfig:
    """The inference configuration in a file. Its paths are relative to the current folder. `changes` override it."""
    data = _read(path, "inference configuration")
    _check_keys(data, {*_INFERENCE, "environment"}, path)
    # v1's files had all keys, with null for those without a value. With an environment, nulls must be ignored.
    settings = {ours: data[key] for key, ours in _INFERENCE.items() if data.get(key) is not None}
    given = data.get("environment")
    if given is not None:
        settings["environment"] = _environment(given, workspace, f"environment in {path}")
    settings = {**settings, **(changes or {})}
    if "entry_script" not in settings:
        raise WebserviceException(f"{path} has no entryScript", hint='Write "entryScript": "score.py".')
    return InferenceConfig(**settings)


def read_deployment_config(
    path: str | os.PathLike[str], changes: Mapping[str, Any] | None = None
) -> WebserviceDeploymentConfiguration:
    """The deployment configuration in a file. `changes` override it."""
    data = _read(path, "deployment configuration")
    kind = str(data.get("computeType", "")).lower()
    if kind not in _MAKERS:
        raise WebserviceException(f"computeType in {path} must be local, aci or aks, not {data.get('computeType')!r}")
    return deployment_config(kind, {**_settings(kind, data, path), **(changes or {})})


def deployment_config(kind: str, settings: Mapping[str, Any]) -> WebserviceDeploymentConfiguration:
    """The configuration of a kind (local, aci, aks)."""
    try:
        made: WebserviceDeploymentConfiguration = _MAKERS[kind](**settings)
    except TypeError as error:
        raise WebserviceException(
            f"a service of kind {kind} does not support these settings", cause=str(error)
        ) from None
    return made


def _settings(kind: str, data: Mapping[str, Any], path: Any) -> dict[str, Any]:
    sections = {"containerResourceRequirements": _RESOURCES} if kind != "local" else {}
    if kind == "aks":
        sections = {**sections, "autoScaler": _SCALING, "livenessProbeRequirements": _PROBES}
    collected = {"dataCollection": {"storageEnabled": "collect_model_data"}} if kind != "local" else {}
    sections = {**sections, **collected}
    known = _OF_KIND[kind]
    _check_keys(data, {*known, *sections, "computeType"}, path)
    found = {ours: data[key] for key, ours in known.items() if data.get(key) is not None}
    for name, names in sections.items():
        part = data.get(name) or {}
        if not isinstance(part, Mapping):
            raise WebserviceException(f"{name} in {path} must be an object")
        found.update({ours: part[key] for key, ours in names.items() if part.get(key) is not None})
    return found


def _environment(given: Any, workspace: Workspace | None, where: str) -> Environment:
    """A complete environment as v1 wrote it, or the name of a registered one."""
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping) or not given.get("name"):
        raise WebserviceException(f"{where} must be an object with a name")
    name, version = str(given["name"]), given.get("version")
    if set(given) <= {"name", "version"}:
        if workspace is None:
            raise WebserviceException(f"{where} needs a workspace in which it is registered")
        return Environment.get(workspace, name, None if version is None else str(version))
    environment = Environment(name)
    definition_file.fill(environment, given, where)
    return environment


def _read(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise WebserviceException(f"the {what} {str(path)!r} cannot be read", cause=str(error)) from None
    except ValueError as error:
        raise WebserviceException(f"the {what} {str(path)!r} is not JSON", cause=str(error)) from None
    if not isinstance(data, dict):
        raise WebserviceException(f"the {what} {str(path)!r} is not a JSON object")
    return data


def _check_keys(data: Mapping[str, Any], known: set[str], path: Any) -> None:
    unknown = sorted(key for key, value in data.items() if key not in known and value is not None)
    if unknown:
        raise WebserviceException(
            f"{path} has unknown keys: {', '.join(unknown)}", hint=f"Known: {', '.join(sorted(known))}."
        )
