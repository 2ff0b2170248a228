"""From the shape of a service to its objects in the cluster. Pure. They are valid from Kubernetes 1.20 on.

The Deployment owns all others, so that deleting it removes everything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.engines.kubernetes.pods import MANAGED_BY, WORKSPACE, GangNames, PodVolume, make_pod, workspace_label
from trainmaster.engines.kubernetes.services.shape import Shape
from trainmaster.shared.kubernetes_settings import OUR_PREFIX

Object = dict[str, Any]

SERVICE = f"{OUR_PREFIX}service"
GENERATION = f"{OUR_PREFIX}generation"
LOADER = f"{OUR_PREFIX}loader"
KEYS_CHANGED = f"{OUR_PREFIX}keys"
"""An annotation of pods. When it changes, the kubelet looks at the Secret at once."""

FILES = "/trainmaster-files"
"""Where pods see the claim of a cache; one of a storage has its own path."""
PORT = 5001
"""As in v1's images."""
KEYS_FOLDER = "/trainmaster-keys"
KEYS_FILE = "keys.json"
START_SECONDS = 1800
"""Within which a replica has to load its model."""
LINGER_SECONDS, DRAIN_SECONDS = 5, 30


@dataclass(frozen=True)
class Identity:
    """Which service it is."""

    name: str
    workspace: str
    """The workspace's id."""

    @property
    def object_name(self) -> str:
        """Of all its objects: services of several workspaces may share a namespace.

        >>> Identity("digits", "5f0c9a1e").object_name
        'tms-digits-d1b3bf63'
        """
        return f"tms-{self.name}-{hashlib.sha256(self.workspace.encode()).hexdigest()[:8]}"

    @property
    def labels(self) -> dict[str, str]:
        return {MANAGED_BY: "trainmaster", **self.selector}

    @property
    def selector(self) -> dict[str, str]:
        return {WORKSPACE: workspace_label(self.workspace), SERVICE: self.name}

    @property
    def loader_selector(self) -> dict[str, str]:
        """Of the pods that put its files on the claim: they must not get its requests."""
        return {WORKSPACE: workspace_label(self.workspace), LOADER: self.name}


def selector_text(labels: Mapping[str, str]) -> str:
    """Labels as a selector."""
    return ",".join(f"{name}={value}" for name, value in labels.items())


def mount_path(shape: Shape) -> str:
    """Where pods see the claim."""
    return shape.options.storage_path or FILES


def make_deployment(
    identity: Identity, generation: int, shape: Shape, command: Sequence[str], variables: Mapping[str, str], keys: bool
) -> Object:
    """The Deployment. With an autoscaler it does not say how many replicas there are."""
    labels = {**identity.labels, GENERATION: str(generation)}
    count = {} if shape.autoscale else {"replicas": shape.replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": identity.object_name, "labels": labels},
        "spec": {
            **count,
            "selector": {"matchLabels": identity.selector},
            # A new replica is ready before an old one goes.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "progressDeadlineSeconds": START_SECONDS + 60,
            "revisionHistoryLimit": 1,
            "template": _template(identity, labels, shape, command, variables, keys),
        },
    }


def _template(
    identity: Identity,
    labels: Mapping[str, str],
    shape: Shape,
    command: Sequence[str],
    variables: Mapping[str, str],
    keys: bool,
) -> Object:
    volumes = [PodVolume("scratch", {"emptyDir": {}}, "/tmp")]
    if keys:
        secret = {"secret": {"secretName": identity.object_name, "defaultMode": 0o444}}
        volumes.append(PodVolume("keys", secret, KEYS_FOLDER, read_only=True))
    pod = _pod(identity, shape, command, labels, variables, volumes, read_only=True)
    spec = {name: value for name, value in pod["spec"].items() if name not in ("hostname", "subdomain")}
    container = spec["containers"][0]
    container |= {"ports": [{"name": "http", "containerPort": PORT}], **_probes(shape)}
    # The server itself waits before it drains, so that no image needs a program for that.
    spec |= {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": LINGER_SECONDS + DRAIN_SECONDS + 10,
        "affinity": spec.get("affinity") or {"podAntiAffinity": _apart(identity)},
    }
    annotations = dict(shape.options.settings.annotations)
    own = {**shape.options.settings.labels, **labels}
    return {"metadata": {"labels": own, "annotations": annotations}, "spec": spec}


def _probes(shape: Shape) -> Object:
    probes = shape.probes
    often = {"periodSeconds": probes.period_seconds, "timeoutSeconds": probes.timeout_seconds}

    def get(path: str) -> Object:
        return {"httpGet": {"path": path, "port": "http"}}

    return {
        "startupProbe": {
            **get("/healthz"),
            "initialDelaySeconds": min(probes.initial_delay_seconds, 1),
            "periodSeconds": 1,
            "timeoutSeconds": probes.timeout_seconds,
            "failureThreshold": START_SECONDS + probes.initial_delay_seconds,
        },
        "livenessProbe": {**get("/healthz"), **often, "failureThreshold": probes.failure_threshold},
        "readinessProbe": {
            **get("/readyz"),
            "periodSeconds": 1,
            "timeoutSeconds": probes.timeout_seconds,
            "successThreshold": probes.success_threshold,
            "failureThreshold": 3,
        },
    }


def _apart(identity: Identity) -> Object:
    """Replicas are on different machines if possible."""
    term = {"labelSelector": {"matchLabels": identity.selector}, "topologyKey": "kubernetes.io/hostname"}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def make_loader(identity: Identity, generation: int, shape: Shape) -> Object:
    """A pod with the claim, through which files come there. It ends by itself."""
    light = replace(shape.options, requests={}, limits={}, gpus=0)
    labels = {MANAGED_BY: "trainmaster", **identity.loader_selector}
    command = [shape.options.python, "-c", "import time; time.sleep(7200)"]
    pod = _pod(identity, replace(shape, options=light), command, labels, {}, [], read_only=False)
    pod["metadata"]["name"] = f"{identity.object_name}-load-{generation}"
    pod["spec"] |= {"activeDeadlineSeconds": 7200, "terminationGracePeriodSeconds": 0}
    return pod


def _pod(
    identity: Identity,
    shape: Shape,
    command: Sequence[str],
    labels: Mapping[str, str],
    variables: Mapping[str, str],
    volumes: Sequence[PodVolume],
    read_only: bool,
) -> Object:
    """A pod as the target's runs have it, with the claim."""
    name = identity.object_name
    names = GangNames(identity.name, identity.name, 1, name, (name,), (name,))
    options = replace(shape.options, settings=replace(shape.options.settings, spread="", queue="", storage=None))
    claim = {"persistentVolumeClaim": {"claimName": shape.claim}}
    files = PodVolume("trainmaster-files", claim, mount_path(shape), read_only=read_only)
    pod = make_pod(names, 0, options, command, labels, env=variables, volumes=(files, *volumes))
    pod["metadata"] = {"name": name, "labels": dict(labels)}
    return pod


def owner_of(deployment: Mapping[str, Any]) -> Object:
    """The reference to a Deployment that was created, for what it owns."""
    found = deployment["metadata"]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": found["name"], "uid": found["uid"]}


def _metadata(identity: Identity, owner: Mapping[str, Any] | None) -> Object:
    owners = {"ownerReferences": [dict(owner)]} if owner is not None else {}
    return {"name": identity.object_name, "labels": identity.labels, **owners}


def make_keys(identity: Identity, keys: Mapping[str, str], owner: Mapping[str, Any] | None = None) -> Object:
    """The Secret with the keys, as the server reads them."""
    data = base64.b64encode(json.dumps(dict(keys)).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": _metadata(identity, owner),
        "data": {KEYS_FILE: data},
    }


def make_service(identity: Identity, shape: Shape, owner: Mapping[str, Any]) -> Object:
    """The Service: the address of the replicas."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(identity, owner),
        "spec": {
            "type": shape.reach.service_type,
            "selector": identity.selector,
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def make_autoscaler(identity: Identity, autoscale: Any, version: str, owner: Mapping[str, Any]) -> Object:
    """The autoscaler, in the version that the cluster has: autoscaling/v2 or v1."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": identity.object_name}
    if version == "autoscaling/v1":
        aim: Object = {"targetCPUUtilizationPercentage": autoscale.utilization}
    else:
        goal = {"type": "Utilization", "averageUtilization": autoscale.utilization}
        aim = {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": goal}}]}
    return {
        "apiVersion": version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(identity, owner),
        "spec": {"scaleTargetRef": target, "minReplicas": autoscale.least, "maxReplicas": autoscale.most, **aim},
    }


def ingress_name(identity: Identity, shape: Shape) -> str:
    """The host name of the service's Ingress; empty without one."""
    return shape.reach.ingress_host.replace("*", identity.name, 1)


def make_ingress(identity: Identity, shape: Shape, owner: Mapping[str, Any]) -> Object:
    """The Ingress: the service under a name of its own."""
    host = ingress_name(identity, shape)
    backend = {"service": {"name": identity.object_name, "port": {"name": "http"}}}
    spec: Object = {
        "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    }
    if shape.reach.ingress_class:
        spec["ingressClassName"] = shape.reach.ingress_class
    if shape.reach.ingress_secret:
        spec["tls"] = [{"hosts": [host], "secretName": shape.reach.ingress_secret}]
    metadata = _metadata(identity, owner)
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def address_of(identity: Identity, shape: Shape, namespace: str, service: Mapping[str, Any]) -> tuple[str, int]:
    """The address for users, as a URL without a port, and the port. `service` is the created one."""
    if shape.reach.ingress_host:
        is_safe = bool(shape.reach.ingress_secret)
        return f"{'https' if is_safe else 'http'}://{ingress_name(identity, shape)}", 443 if is_safe else 80
    kind = shape.reach.service_type
    if kind == "NodePort" and shape.reach.service_address:
        return f"http://{shape.reach.service_address}", int(service["spec"]["ports"][0]["nodePort"])
    if kind == "LoadBalancer":
        given = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [{}]
        host = shape.reach.service_address or given[0].get("hostname") or given[0].get("ip")
        if host:
            return f"http://{host}", 80
    return f"http://{identity.object_name}.{namespace}.svc", 80
