"""Compute targets on Kubernetes from a user's side: creating, testing and showing them, with a real cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.kubernetes_namespace import CLAIM, IMAGE, Namespace
from tests.conftest import end_workspace, until

from trainmaster import ComputeTarget, Experiment, KubernetesCompute, ScriptRunConfig, Workspace
from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.permissions import NEEDED, NEEDED_BY_SERVICES
from trainmaster.engines.kubernetes.pods import labels_of, make_pod, make_service, names_of, work_volume
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import TargetRecord


@pytest.fixture
def command(kubernetes_namespace: Namespace, monkeypatch: pytest.MonkeyPatch):
    """Runs the command line in a workspace, with the kubeconfig of an account that has the rights of role.yaml."""
    monkeypatch.setenv("KUBECONFIG", kubernetes_namespace.kubeconfig)

    def run(workspace: Workspace, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "trainmaster", *words, "--workspace", str(workspace.backend.folder.path)]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def mounted(kubernetes_namespace: Namespace, tmp_path: Path):
    """The volume of the claim, mounted on this machine."""
    place = tmp_path / "mnt"
    place.mkdir()
    subprocess.run(["mount", "--bind", str(kubernetes_namespace.folder), str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def create_workspace():
    """Creates workspaces at a place, whose dispatchers end with the test."""
    made: list[Path] = []

    def create(path: Path) -> Workspace:
        made.append(path)
        return Workspace.create("tested", path=str(path), show_output=False)

    yield create
    for path in made:
        end_workspace(path)


def failed(checks: list) -> list[str]:
    """What runs need and does not work."""
    return [f"{check.name}: {check.message}" for check in checks if not check.is_ok and check.needed_by == "runs"]


def test_the_line_of_the_guide_makes_a_target(command, kubernetes_namespace, mounted, create_workspace):
    workspace = create_workspace(mounted / "workspace")
    words = ["--context", "tests", "--namespace", kubernetes_namespace.name, "--image", IMAGE]
    made = command(workspace, "compute", "create", "kubernetes", "gpu", *words, "--storage", f"claim={CLAIM}")
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == "Target 'gpu' has as many nodes as the cluster gives."
    shown = json.loads(command(workspace, "compute", "show", "gpu", "--json").stdout)
    assert shown["settings"]["storage"] == {"claim": CLAIM, "path": str(mounted)}
    tried = command(workspace, "compute", "test", "gpu", "--json")
    answer = json.loads(tried.stdout)
    assert (tried.returncode, answer["ok"]) == (0, True), answer
    said = {check["name"]: check["message"] for check in answer["checks"] if check["needed_by"] == "runs"}
    assert said["server"].startswith("Kubernetes v1.20")
    assert said["image"].startswith(f"{IMAGE} has Python 3.11")
    assert said["storage"] == f"claim {CLAIM} at {mounted} is seen by both sides"
    # The account has the rights of role.yaml only.
    lacking = {check["name"] for check in answer["checks"] if not check["is_ok"]}
    assert lacking == {f"permission for {resource}" for resource in NEEDED_BY_SERVICES}
    assert not list((mounted / "workspace").glob(".probe-*"))
    until(
        lambda: not kubernetes_namespace.objects("pods", "trainmaster.io/workspace=probe"), what="the probe's removal"
    )


def test_a_storage_that_nobody_mounted_is_asked_for(command, kubernetes_namespace, shared):
    made = command(shared, "compute", "create", "kubernetes", "gpu", "--image", IMAGE, "--storage", "claim=shared")
    assert made.returncode == 2
    assert "Name its path: --storage claim=shared,path=/mnt/shared" in made.stderr


def test_a_storage_of_another_volume_is_noticed(kubernetes_namespace, tmp_path, create_workspace):
    # A folder of this machine that is not the claim's.
    workspace = create_workspace(tmp_path / "workspace")
    target = _create(workspace, kubernetes_namespace, storage=f"claim={CLAIM},path={tmp_path}")
    (problem,) = failed(target.test())
    assert problem.startswith(f"storage: claim {CLAIM} at {tmp_path}: pods do not see the workspace's files")


def test_an_image_that_does_not_exist(kubernetes_namespace, shared):
    target = _create(shared, kubernetes_namespace, image="minik8s.local/nothing:1", image_pull_policy="Never")
    (problem,) = failed(target.test())
    assert "the image cannot be pulled" in problem


def test_an_image_without_python(kubernetes_namespace, shared):
    target = _create(shared, kubernetes_namespace, image="minik8s.local/busybox:1")
    (problem,) = failed(target.test())
    assert "its image minik8s.local/busybox:1 has no program 'python3'" in problem


def test_a_user_without_permissions(command, kubernetes_namespace, shared, tmp_path, monkeypatch):
    nobody = tmp_path / "nobody"
    config = json.loads(Path(kubernetes_namespace.kubeconfig).read_text())
    kubernetes_namespace.kubectl("create", "serviceaccount", "nobody")
    config["users"][0]["user"] = {"token": until(lambda: _token(kubernetes_namespace, "nobody"), what="a token")}
    nobody.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(nobody))
    made = command(shared, "compute", "create", "kubernetes", "gpu", "--image", IMAGE, "--kubeconfig", str(nobody))
    assert made.returncode == 0
    assert f"its user may not {', '.join(NEEDED['pods'])} pods" in made.stderr
    tried = command(shared, "compute", "test", "gpu")
    assert tried.returncode == 5
    assert "deploy/kubernetes/role.yaml" in tried.stdout
    assert "image" not in tried.stdout


def test_a_cluster_that_does_not_answer(command, kubernetes_namespace, workspace, tmp_path):
    config = json.loads(Path(kubernetes_namespace.kubeconfig).read_text())
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1"}
    away = tmp_path / "away"
    away.write_text(json.dumps(config))
    made = command(workspace, "compute", "create", "kubernetes", "gpu", "--kubeconfig", str(away))
    assert made.returncode != 0
    assert "https://127.0.0.1:1" in made.stderr
    missing = command(
        workspace, "compute", "create", "kubernetes", "gpu", "--context", "prod", "--kubeconfig", str(away)
    )
    assert "the context 'prod' is not in" in missing.stderr
    with pytest.raises(ComputeTargetException, match="there is no compute target 'gpu'"):
        ComputeTarget(workspace, "gpu")


def test_a_target_that_v1_attached(kubernetes_namespace, workspace, monkeypatch):
    """The context has the name of the cluster, as `az aks get-credentials` makes it."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    resource = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/tests"
    given = KubernetesCompute.attach_configuration(resource, namespace=kubernetes_namespace.name)
    with pytest.warns(UserWarning, match="is only recorded"):
        unknown = ComputeTarget.attach(workspace, "arc", given)
    assert not unknown.is_usable
    monkeypatch.setenv("KUBECONFIG", kubernetes_namespace.kubeconfig)
    found = ComputeTarget.attach(workspace, "arc", given)
    assert isinstance(found, KubernetesCompute)
    assert found.is_usable
    assert found.serialize()["options"]["context"] == "tests"


def test_manifests_are_accepted_by_this_server(kubernetes_namespace):
    """The oldest Kubernetes that is supported. (Newer ones: tests/unit/engines/test_kubernetes_pods.py.)"""
    settings = {
        "image": IMAGE,
        "cpus": "100m",
        "memory": "64Mi",
        "node_selector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "spread": "require",
        "service_account": "default",
        "volumes": [
            {"kind": "claim", "name": CLAIM, "path": "/data", "read_only": True},
            {"kind": "node", "name": "/tmp", "path": "/scratch"},
            {"kind": "config", "name": "settings", "path": "/etc/settings"},
            {"kind": "secret", "name": "keys", "path": "/etc/keys"},
        ],
        "image_pull_secrets": ["registry"],
        "run_as_user": 1000,
        "fs_group": 1000,
        "labels": {"team": "vision"},
        "queue": "team-a",
    }
    options = PodOptions.read(TargetRecord("gpu", "kubernetes", 1, 1, 1, settings))
    names = names_of("Digits_1_ab", 1, 2, "ws")
    labels = labels_of("ws", names)
    owner = {"apiVersion": "v1", "kind": "Service", "name": "any", "uid": "0b7f"}
    work = [work_volume(options, "/trainmaster")]
    pods = [make_pod(names, n, options, ["true"], labels, owner, {"A": "1"}, work) for n in (0, 1)]
    for manifest in (make_service(names, labels), *pods):
        # kubectl compares the fields with the schema of the server, which itself ignores what it does not know.
        kubernetes_namespace.kubectl("create", "--dry-run=server", "--filename", "-", text=json.dumps(manifest))


def _create(workspace: Workspace, namespace: Namespace, **settings: object) -> KubernetesCompute:
    given = {"kubeconfig": namespace.kubeconfig, "image": IMAGE, **settings}
    target = ComputeTarget.create(workspace, "gpu", KubernetesCompute.configuration(**given))  # type: ignore[arg-type]
    assert isinstance(target, KubernetesCompute)
    return target


def _token(namespace: Namespace, account: str) -> str:
    import base64

    for secret in namespace.objects("secrets"):
        noted = secret["metadata"].get("annotations", {}).get("kubernetes.io/service-account.name")
        if noted == account and "token" in secret.get("data", {}):
            return base64.b64decode(secret["data"]["token"]).decode()
    return ""


SCRIPT = """
import os, sys
print("python", sys.executable, "A", os.environ.get("A"), flush=True)
"""


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    return str(folder)


def test_an_image_of_a_run_is_that_of_its_pod(command, kubernetes_namespace, shared, project):
    """No container engine of this machine is asked. Options for docker become those of the pod."""
    _create(shared, kubernetes_namespace, image="minik8s.local/busybox:1")
    options = ["--image", IMAGE, "--image-argument=--env=A=7", "--wait"]
    ended = command(shared, "submit", project, "train.py", "--target", "gpu", *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "python /usr/bin/python3 A 7" in ended.stdout
    kubernetes_namespace.wait_until_empty()


def test_what_no_pod_can_have_is_refused_at_submit(command, kubernetes_namespace, shared, project):
    _create(shared, kubernetes_namespace)
    options = ["--image", IMAGE, "--image-argument=--network=host"]
    refused = command(shared, "submit", project, "train.py", "--target", "gpu", *options)
    assert refused.returncode == 2
    assert "docker's option '--network' has no counterpart on Kubernetes" in refused.stderr


def test_a_run_says_what_it_waits_for(kubernetes_namespace, shared, project):
    _create(shared, kubernetes_namespace, cpus_per_node=500)
    config = ScriptRunConfig(project, "train.py", compute_target="gpu")
    run = Experiment(shared, "waiting").submit(config)
    until(
        lambda: "waiting for nodes: 0/2 are available (2 lack CPUs)" in run.get_details().get("waitingFor", ""),
        what="the scheduler's reason",
    )
    run.cancel()
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Canceled"
    kubernetes_namespace.wait_until_empty()
