"""What a service on Kubernetes is like: v1's settings of the service, over those of its target. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.kubernetes_settings import KubernetesSettings
from trainmaster.shared.quantities import cpu_millis, memory_bytes, show_cpus, show_memory
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec

_LEAST_CPU = 100
"""In thousandths, as in v1. Without a request, an autoscaler has nothing to compare with."""
_TARGET_UTILIZATION = 70
_MOST_REPLICAS = 10


@dataclass(frozen=True)
class Autoscale:
    """The range of replicas, and the use of requested CPUs, in percent, that the cluster aims at."""

    least: int
    most: int
    utilization: int


@dataclass(frozen=True)
class Probes:
    """v1's parameters of the liveness probe."""

    period_seconds: int = 10
    initial_delay_seconds: int = 0
    timeout_seconds: int = 5
    success_threshold: int = 1
    failure_threshold: int = 6


@dataclass(frozen=True)
class Shape:
    """One service in a cluster."""

    options: PodOptions
    replicas: int
    autoscale: Autoscale | None
    probes: Probes = field(default_factory=Probes)

    @property
    def reach(self) -> KubernetesSettings:
        """How users reach services of the target."""
        return self.options.settings

    @property
    def claim(self) -> str:
        """The claim with the service's files."""
        return self.options.storage_claim or self.options.cache_claim


def read_shape(target: TargetRecord, record: ServiceRecord, spec: ServiceSpec) -> Shape:
    """The shape of a service; refuses what no cluster can have."""
    options = PodOptions.read(target)
    container = spec.environment.container
    if container is not None:
        options = replace(options, image=container.image)
    shape = Shape(
        options=_with_resources(options, record.settings),
        replicas=spec.replicas,
        autoscale=_read_autoscale(record.settings, spec.replicas),
        probes=_read_probes(record.settings),
    )
    if not shape.claim:
        raise WebserviceException(
            f"compute target '{target.name}' has no claim for the files of services",
            cause="Pods of a service start by themselves, also without Trainmaster: they read their code, model and "
            "packages from a claim.",
            hint="Give the target a claim that several pods can mount: --cache claim=NAME, or "
            "--storage claim=NAME,path=/mnt/shared.",
        )
    return shape


def _with_resources(options: PodOptions, settings: Mapping[str, Any]) -> PodOptions:
    """v1's `cpu_cores`, `memory_gb`, their limits and `gpu_cores`, over the target's."""
    requests, limits = dict(options.requests), dict(options.limits)
    if settings.get("cpu_cores"):
        requests["cpu"] = _cpus(settings["cpu_cores"])
        limits.pop("cpu", None)
    if settings.get("memory_gb"):
        requests["memory"] = limits["memory"] = _memory(settings["memory_gb"])
    if settings.get("cpu_cores_limit"):
        limits["cpu"] = _cpus(settings["cpu_cores_limit"])
    if settings.get("memory_gb_limit"):
        limits["memory"] = _memory(settings["memory_gb_limit"])
    if settings.get("gpu_cores"):
        requests[options.settings.gpu_resource] = limits[options.settings.gpu_resource] = str(settings["gpu_cores"])
    requests.setdefault("cpu", show_cpus(_LEAST_CPU))
    _check_limits(requests, limits)
    return replace(options, requests=requests, limits=limits)


def _check_limits(requests: Mapping[str, str], limits: Mapping[str, str]) -> None:
    for name, read in (("cpu", cpu_millis), ("memory", memory_bytes)):
        if name in limits and (read(limits[name]) or 0) < (read(requests.get(name, "0")) or 0):
            raise WebserviceException(f"the limit of {name}, {limits[name]}, is below the request, {requests[name]}")


def _cpus(cores: float) -> str:
    return show_cpus(max(1, round(float(cores) * 1000)))


def _memory(gigabytes: float) -> str:
    return show_memory(round(float(gigabytes) * 2**30))


def _read_autoscale(settings: Mapping[str, Any], replicas: int) -> Autoscale | None:
    if not (settings.get("autoscale_enabled") or settings.get("autoscale_max_replicas")):
        return None
    least = int(settings.get("autoscale_min_replicas") or replicas)
    most = int(settings.get("autoscale_max_replicas") or max(least, _MOST_REPLICAS))
    return Autoscale(least, most, int(settings.get("autoscale_target_utilization") or _TARGET_UTILIZATION))


def _read_probes(settings: Mapping[str, Any]) -> Probes:
    given = {name: settings[name] for name in Probes.__dataclass_fields__ if settings.get(name) is not None}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < (0 if name.startswith("initial") else 1):
            raise WebserviceException(f"{name} must be a whole number of at least 1, not {value!r}")
    return Probes(**given)
