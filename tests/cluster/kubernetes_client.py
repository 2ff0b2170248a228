"""Clients of a cluster for tests, and pods without Trainmaster in them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from tests.cluster.kubernetes_namespace import IMAGE, Namespace
from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.api import Api


@contextlib.asynccontextmanager
async def open_client(kubeconfig: object, namespace: Namespace, **options: Any) -> AsyncIterator[Api]:
    """A client with the credentials of a kubeconfig file, for a namespace."""
    api = Api(read_access({"kubeconfig": str(kubeconfig), "namespace": namespace.name}), **options)
    try:
        yield api
    finally:
        await api.close()


def make_pod(name: str, command: Sequence[str] = ("sleep", "100000"), **spec: Any) -> dict[str, Any]:
    """A pod that can be deleted quickly; `container` has more for its container."""
    container = {"name": "main", "image": IMAGE, "command": list(command), **spec.pop("container", {})}
    body = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"made-by": "test"}}, "spec": body}


def name_of(item: dict[str, Any]) -> str:
    return str(item["metadata"]["name"])


def state_of(pod: dict[str, Any]) -> tuple[str, str | None]:
    return name_of(pod), pod["status"].get("phase")
