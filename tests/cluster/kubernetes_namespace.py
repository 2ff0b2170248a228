"""A namespace of the Kubernetes cluster for tests, with an account that has exactly the rights of `role.yaml`."""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import until
from trainmaster import ComputeTarget, KubernetesCompute, Run, Workspace

if TYPE_CHECKING:
    from tests.cluster.kubernetes import Cluster

ROLE = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes" / "role.yaml"
IMAGE = "minik8s.local/python:3.11"
"""The image that has a Python; there is no registry, so there are only the images that every node has."""
CLAIM = "shared"
"""A claim in every namespace, which all nodes can mount. From here it is `Namespace.folder`."""
_OURS, _RUN_ID = "trainmaster.io/run", "trainmaster.io/run-id"
_ACCOUNT = "trainmaster-tests"


@dataclass(frozen=True)
class Namespace:
    """A namespace, and what a person with exactly the rights of `role.yaml` needs to use it."""

    name: str
    kubeconfig: str
    """A file with the token of the service account."""
    folder: Path
    """The folder on this machine behind the claim."""
    cluster: Cluster

    def kubectl(self, *words: str, text: str | None = None) -> str:
        """What `kubectl` prints, as the administrator, in this namespace."""
        return self.cluster.kubectl("--namespace", self.name, *words, text=text)

    def objects(self, kind: str, labels: str = "") -> list[dict[str, Any]]:
        """All objects of a kind."""
        return list(json.loads(self.kubectl("get", kind, "--selector", labels, "--output", "json"))["items"])

    def pods_of(self, run: Run) -> list[dict[str, Any]]:
        """The pods of a run, in the order of its nodes."""
        found = [pod for pod in self.objects("pods", _OURS) if pod["metadata"]["annotations"][_RUN_ID] == run.id]
        return sorted(found, key=lambda pod: int(pod["metadata"]["labels"]["trainmaster.io/node"]))

    def used_rights(self) -> set[tuple[str, str]]:
        """The kinds of objects and verbs that the account has asked for, such as ("pods/exec", "get")."""
        user, found = f"system:serviceaccount:{self.name}:{_ACCOUNT}", set()
        for line in (self.cluster.state / "log" / "audit.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event["user"]["username"] == user and "objectRef" in event:
                kind = [event["objectRef"].get(name) for name in ("resource", "subresource")]
                found.add(("/".join(filter(None, kind)), event["verb"]))
        return found

    def left(self) -> list[str]:
        """What Trainmaster has made in this namespace and not removed."""
        found = [each for kind in ("pods", "services", "secrets") for each in self.objects(kind, _OURS)]
        return [f"{each['kind']} {each['metadata']['name']}" for each in found]

    def wait_until_empty(self) -> None:
        """Returns when nothing of any run is left; kubelets take some seconds to report the end of a pod."""
        deadline = time.monotonic() + 120
        while left := self.left():
            assert time.monotonic() < deadline, f"still there: {left}"
            time.sleep(0.2)


def create_target(
    workspace: Workspace, name: str, namespace: Namespace, storage: Path | None = None, **settings: Any
) -> None:
    """A compute target on the cluster, with files over the API server unless there is a shared folder."""
    if storage is not None:
        settings["storage"] = {"claim": CLAIM, "path": str(storage)}
    known = {"kubeconfig": namespace.kubeconfig, "image": IMAGE, "grace_seconds": 10}
    ComputeTarget.create(workspace, name, KubernetesCompute.configuration(**{**known, **settings}))


def furnish(namespace: Namespace, role: Path) -> None:
    """Give a new namespace its role, account, claim and kubeconfig file."""
    namespace.kubectl("apply", "--filename", str(role))
    namespace.kubectl("create", "serviceaccount", _ACCOUNT)
    account = f"--serviceaccount={namespace.name}:{_ACCOUNT}"
    for each in namespace.objects("roles"):
        name = each["metadata"]["name"]
        namespace.kubectl("create", "rolebinding", name, f"--role={name}", account)
    namespace.kubectl("apply", "--filename", "-", text=_volume(namespace))
    _write_kubeconfig(namespace, until(lambda: _token(namespace, _ACCOUNT), what="a token"))
    # No pod can be created before it is there.
    until(lambda: _token(namespace, "default"), what="the default account")


def _volume(namespace: Namespace) -> str:
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace.name}-{CLAIM}"},
        "spec": {
            "capacity": size,
            "accessModes": modes,
            "hostPath": {"path": str(namespace.folder)},
            "storageClassName": "",
            "claimRef": {"namespace": namespace.name, "name": CLAIM},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": namespace.name},
        "spec": {"accessModes": modes, "resources": {"requests": size}, "storageClassName": ""},
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [volume, claim]})


def _token(namespace: Namespace, account: str) -> dict[str, str] | None:
    for secret in namespace.objects("secrets"):
        noted = secret["metadata"].get("annotations", {}).get("kubernetes.io/service-account.name")
        if noted == account and "token" in secret.get("data", {}):
            return dict(secret["data"])
    return None


def _write_kubeconfig(namespace: Namespace, secret: dict[str, str]) -> None:
    cluster = {"server": namespace.cluster.server, "certificate-authority-data": secret["ca.crt"]}
    token = base64.b64decode(secret["token"]).decode()
    context = {"cluster": "tests", "user": "trainmaster", "namespace": namespace.name}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "trainmaster", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": context}],
        "current-context": "tests",
    }
    with open(os.open(namespace.kubeconfig, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        json.dump(content, file)
