"""`deploy/kubernetes` on a real cluster: the server with PostgreSQL, as the guide installs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.kubernetes import Cluster
from tests.cluster.kubernetes_images import unpack_postgresql, unpack_server
from tests.conftest import until
from tests.integration.test_kubernetes_manifests import DEPLOY, KUBECTL

pytestmark = pytest.mark.timeout(600)

NAMESPACE = "trainmaster"
SERVER, POSTGRESQL = "trainmaster-tests/server:1", "trainmaster-tests/postgresql:1"
IMAGES = [
    {"name": "registry.example/trainmaster-server", "newName": "trainmaster-tests/server", "newTag": "1"},
    {"name": "docker.io/library/postgres", "newName": "trainmaster-tests/postgresql", "newTag": "1"},
]
CLAIMS = {"trainmaster-data": 8765, "trainmaster-postgresql-trainmaster-postgresql-0": 999}
"""To the accounts that own their volumes."""
ASK = """
import json, sys, urllib.request
method, path, token, body = sys.argv[1:]
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"} if token else {}
request = urllib.request.Request("http://trainmaster:8765" + path, body.encode() or None, headers, method=method)
print(urllib.request.urlopen(request, timeout=30).read().decode())
"""


class Installed:
    """The manifests, applied."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def kubectl(self, *words: str) -> str:
        return self._cluster.kubectl("--namespace", NAMESPACE, *words)

    def wait(self) -> None:
        """Until the server is ready for requests."""
        self.kubectl("rollout", "status", "deployment/trainmaster-server", "--timeout=240s")

    def trainmaster(self, *words: str) -> Any:
        """What a command of Trainmaster in the server's container prints."""
        command = ["exec", "deployment/trainmaster-server", "--container", "server", "--", "trainmaster"]
        return json.loads(self.kubectl(*command, *words, "--json"))

    def ask(self, method: str, path: str, token: str = "", body: Any = None) -> str:
        """The answer to a request from another pod, through the Service."""
        text = json.dumps(body) if body is not None else ""
        return self.kubectl("exec", "client", "--", "python3", "-c", ASK, method, path, token, text)

    def pod(self) -> str:
        """The name of the server's pod."""
        words = ("get", "pods", "--selector", "app.kubernetes.io/name=trainmaster-server", "--output", "json")
        pods = json.loads(self.kubectl(*words))["items"]
        (name,) = (each["metadata"]["name"] for each in pods if "deletionTimestamp" not in each["metadata"])
        return str(name)


@pytest.fixture(scope="module")
def installed(kubernetes_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("server")
    for name, unpack in ((SERVER, unpack_server), (POSTGRESQL, unpack_postgresql)):
        unpack(folder / name)
        kubernetes_cluster.add_image(name, folder / name)
        shutil.rmtree(folder / name)
    objects = _build(folder)
    kubernetes_cluster.kubectl("apply", "--filename", "-", text=objects)
    try:
        yield Installed(kubernetes_cluster)
    finally:
        kubernetes_cluster.kubectl("delete", "--wait=false", "--filename", "-", text=objects)


def _build(folder: Path) -> str:
    """The manifests of the project; only the images and the volumes are those of the cluster."""
    shutil.copytree(DEPLOY / "kubernetes", folder / "kubernetes", ignore=shutil.ignore_patterns("password"))
    (folder / "kubernetes/password").write_text("only-for-tests")
    overlay = folder / "overlay"
    overlay.mkdir()
    further = [*(_volume(folder, claim, user) for claim, user in CLAIMS.items()), _client()]
    (overlay / "further.yaml").write_text(yaml.safe_dump_all(further))
    (overlay / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": ["../kubernetes", "further.yaml"], "images": IMAGES})
    )
    return subprocess.run([KUBECTL, "kustomize", str(overlay)], check=True, capture_output=True, text=True).stdout


def _volume(folder: Path, claim: str, user: int) -> dict[str, Any]:
    place = folder / claim
    place.mkdir(mode=0o700)
    shutil.chown(place, user, user)
    spec = {
        "capacity": {"storage": "50Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": NAMESPACE, "name": claim},
        "hostPath": {"path": str(place)},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": claim}, "spec": spec}


def _client() -> dict[str, Any]:
    container = {"name": "client", "image": SERVER, "command": ["sleep", "3600"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    metadata = {"name": "client", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_the_server_survives_the_loss_of_its_pods(installed: Installed) -> None:
    installed.wait()
    installed.kubectl("wait", "--for=condition=Ready", "pod/client", "--timeout=120s")
    assert json.loads(installed.ask("GET", "/health"))["status"] == "ok"
    token = installed.trainmaster("server", "token", "create", "admin", "--root", "/data/server")["token"]
    installed.ask("POST", "/api/v1/workspaces", token, {"name": "vision"})
    installed.ask("POST", "/api/v1/workspaces/vision/operations/experiments.ensure", token, {"name": "digits"})

    before = installed.pod()
    installed.kubectl("delete", "pod", before, "trainmaster-postgresql-0", "--wait=true")
    installed.wait()
    assert installed.pod() != before
    assert "vision" in installed.ask("GET", "/api/v1/workspaces", token)
    # Asks the workspace's dispatcher, which is in the new pod, and the database.
    assert "digits" in installed.ask("GET", "/api/v1/workspaces/vision/experiments", token)
    words = ("exec", "deployment/trainmaster-server", "--container", "server", "--", "sh", "-c")
    found = installed.kubectl(*words, "cat /data/server/server.json /data/server/workspaces/*/database.json")
    assert "trainmaster-postgresql" in found and "only-for-tests" not in found, "no password is on the volume"


def test_a_new_password_takes_effect(installed: Installed) -> None:
    installed.wait()
    (secret,) = (name for name in installed.kubectl("get", "secrets", "--output", "name").split() if "database" in name)
    installed.kubectl("patch", secret, "--patch", json.dumps({"stringData": {"password": "another-one"}}))
    installed.kubectl("delete", "pod", installed.pod(), "trainmaster-postgresql-0", "--wait=true")
    installed.wait()
    until(lambda: "ready" in installed.ask("GET", "/ready"), what="the server with the new password")
