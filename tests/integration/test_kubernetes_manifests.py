"""The manifests in `deploy/`: what kubectl makes of them, against the schemas of Kubernetes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
KUBECTL = str(Path(sys.executable).with_name("kubectl"))
RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def build(folder: Path) -> list[dict[str, Any]]:
    """All objects of a folder."""
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a password: a real one is never in the project's folder."""
    folder = tmp_path_factory.mktemp("deploy")
    for name in ("kubernetes", "kubernetes-ingress"):
        shutil.copytree(DEPLOY / name, folder / name, ignore=shutil.ignore_patterns("password"))
    (folder / "kubernetes/password").write_text("only-for-tests")
    return folder


@pytest.mark.parametrize("version", ["1.25", "1.30", "1.36"])
@pytest.mark.parametrize("name", ["kubernetes", "kubernetes-ingress"])
def test_every_object_fits_the_schemas(deploy: Path, name: str, version: str) -> None:
    for each in build(deploy / name):
        kubernetes_validate.validate(each, version, strict=True)


def test_no_password_is_committed_and_a_missing_one_is_an_error(deploy: Path, tmp_path: Path) -> None:
    shutil.copytree(deploy / "kubernetes", tmp_path / "copy", ignore=shutil.ignore_patterns("password"))
    done = subprocess.run([KUBECTL, "kustomize", str(tmp_path / "copy")], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "password" in done.stderr


def test_containers_cannot_become_more_than_they_are(deploy: Path) -> None:
    workloads = [each for each in build(deploy / "kubernetes") if each["kind"] in ("Deployment", "StatefulSet")]
    assert len(workloads) == 2
    for each in workloads:
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"]
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"] == RESTRICTED
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]


def test_every_role_is_bound_to_the_account_of_the_server(deploy: Path) -> None:
    objects = build(deploy / "kubernetes")
    roles = {each["metadata"]["name"] for each in objects if each["kind"] == "Role"}
    bindings = [each for each in objects if each["kind"] == "RoleBinding"]
    (server,) = (each for each in objects if each["kind"] == "Deployment")
    account = server["spec"]["template"]["spec"]["serviceAccountName"]
    assert {each["roleRef"]["name"] for each in bindings} == roles
    assert all([subject["name"] for subject in each["subjects"]] == [account] for each in bindings)
