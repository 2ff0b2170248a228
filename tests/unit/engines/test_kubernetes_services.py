"""Services on Kubernetes without a cluster: from settings to objects, and from objects to words."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest

from trainmaster.engines.kubernetes.services import manifests
from trainmaster.engines.kubernetes.services.manifests import GENERATION, Identity
from trainmaster.engines.kubernetes.services.rollout import BROKEN, health, look
from trainmaster.engines.kubernetes.services.shape import Autoscale, Shape, read_shape
from trainmaster.job.errors import ComputeTargetException, WebserviceException
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.service_spec import ServiceCode, ServiceRecord, ServiceSpec

OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "1"}
IDENTITY = Identity("digits", "5f0c9a1e")
VERSIONS = ("1.25", "1.36")


def shape_of(settings: dict[str, Any] | None = None, replicas: int = 1, **options: Any) -> Shape:
    given = {"image": "python:3.11", "cache": {"kind": "claim", "name": "shared"}, **options}
    target = TargetRecord("cluster", "kubernetes", 2, 1, 0, given)
    spec = ServiceSpec(ServiceCode("id", "score.py"), replicas=replicas)
    return read_shape(target, ServiceRecord("digits", "AKS", spec, "token", settings=settings or {}), spec)


def deployment_of(shape: Shape, keys: bool = True) -> dict[str, Any]:
    return manifests.make_deployment(IDENTITY, 3, shape, ["python", "server"], {"A": "b"}, keys)


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_fit_the_schemas(version: str) -> None:
    reach = {"ingress_host": "*.models.example.org", "ingress_class": "nginx", "ingress_secret": "tls"}
    shape = shape_of({"autoscale_enabled": True}, service_type="NodePort", **reach)
    assert shape.autoscale is not None
    objects = [
        deployment_of(shape),
        manifests.make_loader(IDENTITY, 3, shape),
        manifests.make_keys(IDENTITY, {"primary": "a", "secondary": "b"}, OWNER),
        manifests.make_service(IDENTITY, shape, OWNER),
        manifests.make_ingress(IDENTITY, shape, OWNER),
        *(manifests.make_autoscaler(IDENTITY, shape.autoscale, f"autoscaling/{each}", OWNER) for each in ("v1", "v2")),
    ]
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


def test_an_update_never_has_fewer_replicas() -> None:
    spec = deployment_of(shape_of(replicas=3))["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > manifests.LINGER_SECONDS + manifests.DRAIN_SECONDS
    (files,) = (each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "trainmaster-files")
    assert files["readOnly"]


def test_an_autoscaler_decides_about_replicas() -> None:
    given = {"autoscale_enabled": True, "autoscale_min_replicas": 2, "autoscale_target_utilization": 50}
    shape = shape_of(given, replicas=2)
    assert shape.autoscale == Autoscale(2, 10, 50)
    assert "replicas" not in deployment_of(shape)["spec"]


@pytest.mark.parametrize(
    ("settings", "requests", "limits"),
    [
        ({}, {"cpu": "100m"}, {}),
        ({"cpu_cores": 2, "memory_gb": 1}, {"cpu": "2", "memory": "1Gi"}, {"memory": "1Gi"}),
        (
            {"cpu_cores": 0.5, "cpu_cores_limit": 1, "memory_gb": 1, "memory_gb_limit": 2},
            {"cpu": "500m", "memory": "1Gi"},
            {"cpu": "1", "memory": "2Gi"},
        ),
        ({"gpu_cores": 1}, {"cpu": "100m", "nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}),
    ],
)
def test_resources_are_those_of_v1(settings: dict[str, Any], requests: dict[str, str], limits: dict[str, str]) -> None:
    found = shape_of(settings).options
    assert (dict(found.requests), dict(found.limits)) == (requests, limits)


@pytest.mark.parametrize(
    ("settings", "options", "words"),
    [
        ({}, {"cache": {"kind": "none"}}, "has no claim"),
        ({"cpu_cores": 2, "cpu_cores_limit": 1}, {}, "is below the request"),
        ({"period_seconds": 0}, {}, "period_seconds must be"),
        ({}, {"service_type": "Magic"}, "a setting of the target"),
        ({}, {"ingress_host": "no host"}, "ingress_host must be"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises((WebserviceException, ComputeTargetException), match=words):
        shape_of(settings, **options)


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, ("http://tms-digits-d1b3bf63.train.svc", 80)),
        ({"service_type": "NodePort", "service_address": "k8s.example.org"}, ("http://k8s.example.org", 30001)),
        ({"service_type": "LoadBalancer"}, ("http://10.1.1.1", 80)),
        ({"ingress_host": "*.example.org"}, ("http://digits.example.org", 80)),
        ({"ingress_host": "*.example.org", "ingress_secret": "tls"}, ("https://digits.example.org", 443)),
    ],
)
def test_addresses(options: dict[str, Any], address: tuple[str, int]) -> None:
    created = {
        "spec": {"ports": [{"nodePort": 30001}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}},
    }
    assert manifests.address_of(IDENTITY, shape_of(**options), "train", created) == address


def rolled(**status: Any) -> dict[str, Any]:
    """A Deployment of generation 3 with two replicas."""
    metadata = {"generation": 7, "labels": {GENERATION: "3"}}
    return {"metadata": metadata, "spec": {"replicas": 2}, "status": {"observedGeneration": 7, **status}}


def pod_of(generation: int = 3, **container: Any) -> dict[str, Any]:
    status = {"phase": "Running", "containerStatuses": [container]} if container else {"phase": "Running"}
    metadata = {"name": "pod", "labels": {GENERATION: str(generation)}}
    return {"metadata": metadata, "spec": {"nodeName": "node1"}, "status": status}


def ended(code: int, message: str = "", **more: Any) -> dict[str, Any]:
    return {"lastState": {"terminated": {"exitCode": code, "message": message, **more}}}


BROKEN_SCRIPT = json.dumps({"headline": "init failed", "cause": "ValueError: no", "hint": ""})


@pytest.mark.parametrize(
    ("deployment", "pods", "state"),
    [
        (None, [], "missing"),
        (rolled(replicas=2, updatedReplicas=2, availableReplicas=2), [], "ready"),
        (rolled(replicas=3, updatedReplicas=2, availableReplicas=3), [], "waiting"),
        (rolled(replicas=2, updatedReplicas=2, availableReplicas=1), [], "waiting"),
        (rolled(replicas=2, updatedReplicas=2, availableReplicas=2, observedGeneration=6), [], "waiting"),
        (rolled(), [pod_of(ready=False, restartCount=1, **ended(BROKEN, BROKEN_SCRIPT))], "failed"),
        (rolled(), [pod_of(2, ready=False, restartCount=1, **ended(BROKEN, BROKEN_SCRIPT))], "waiting"),
        (rolled(), [pod_of(ready=False, restartCount=1, **ended(1))], "waiting"),
        (rolled(), [pod_of(ready=False, restartCount=3, **ended(137, reason="OOMKilled"))], "failed"),
        (rolled(conditions=[{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]), [], "failed"),
    ],
)
def test_how_far_a_generation_is(deployment: Any, pods: list[Any], state: str) -> None:
    found = look(deployment, pods, 3)
    assert found.state == state and (found.error is not None) == (state == "failed")


def test_the_words_of_a_broken_script_are_its_own() -> None:
    error = look(rolled(), [pod_of(ready=False, **ended(BROKEN, BROKEN_SCRIPT))], 3).error
    assert error is not None and error.headline == "init failed" and error.cause == "ValueError: no"


def test_health_is_one_replica_that_answers() -> None:
    assert health(rolled(availableReplicas=1), []) == ""
    assert health(rolled(), []) == "no replica is ready"
    assert health(None, []) == "its Deployment was deleted"
