"""The objects of a run in a Kubernetes cluster: names, manifests and the patch of a target."""

from __future__ import annotations

import re
from dataclasses import replace

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.pod_patch import patch_pod
from trainmaster.engines.kubernetes.pods import (
    ATTEMPT,
    NODE,
    RUN,
    RUN_ID,
    WORKSPACE,
    PodVolume,
    labels_of,
    make_pod,
    make_service,
    names_of,
    owner_of,
    selector_of,
    shorten,
    work_volume,
    workspace_label,
)
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_names import is_label_name, is_label_value
from trainmaster.shared.records import TargetRecord

# The oldest and the newest version whose schema the validator has. (Kubernetes 1.20 itself is asked in
# tests/integration/test_kubernetes_compute.py.)
VERSIONS = ("1.25", kubernetes_validate.latest_version())
OWNER = {"apiVersion": "v1", "kind": "Service", "name": "tm-x", "uid": "0b7f"}
COMMAND = ["python3", "-c", "pass"]

EVERYTHING = {
    "image": "registry.example.org:5000/team/torch:2.1",
    "image_pull_policy": "IfNotPresent",
    "image_pull_secrets": ["registry"],
    "cpus": "5.5",
    "memory": "16GB",
    "limit_cpus": True,
    "gpu_resource": "amd.com/gpu",
    "resources": {"rdma/hca": "1"},
    "shm_size": "8g",
    "node_selector": {"zone": "a"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "spread": "require",
    "priority_class": "high",
    "service_account": "trainer",
    "volumes": [
        {"kind": "claim", "name": "data", "path": "/data", "read_only": True},
        {"kind": "node", "name": "/mnt/fast", "path": "/scratch"},
        {"kind": "config", "name": "settings", "path": "/etc/settings"},
        {"kind": "secret", "name": "keys", "path": "/etc/keys"},
    ],
    "run_as_user": 1000,
    "run_as_group": 1000,
    "fs_group": 2000,
    "labels": {"team": "vision"},
    "annotations": {"example.org/note": "any text: is allowed"},
    "queue": "team-a",
    "scheduler": "volcano",
    "storage": {"claim": "shared", "path": "/mnt/shared"},
    "pod_patch": {"spec": {"dnsPolicy": "ClusterFirst"}},
}


def options_of(gpus: int = 0, **options: object) -> PodOptions:
    return PodOptions.read(TargetRecord("gpu", "kubernetes", 1000, 4, gpus, {"image": "python:3.11-slim", **options}))


def pod_of(options: PodOptions, number: int = 0, count: int = 2, **more: object) -> dict:
    names = names_of("digits_1_ab", 1, count, "ws-1")
    return make_pod(names, number, options, COMMAND, labels_of("ws-1", names), OWNER, **more)  # type: ignore[arg-type]


@given(st.text(max_size=300), st.integers(1, 9999), st.integers(1, 3))
def test_names_are_valid_for_any_run_id(run_id, attempt, count):
    names = names_of(run_id, attempt, count, "ws")
    assert len(names.run) <= 40
    assert all(is_label_name(each) for each in (names.run, names.service, *names.pods))
    assert all(host == f"{pod}.{names.service}" for host, pod in zip(names.hosts, names.pods, strict=True))
    assert all(is_label_value(value) for value in labels_of("ws", names).values())
    # Room for the numbers of thousands of attempts and nodes.
    assert len(f"{names_of(run_id, 9999, 1, 'ws').service}-9999") <= 63


@given(st.lists(st.text(alphabet="aAbB_-. ", max_size=60), unique=True, min_size=2, max_size=20))
def test_names_of_different_runs_differ(run_ids):
    assert len({shorten(run_id) for run_id in run_ids}) == len(run_ids)
    assert len({shorten(run_id, workspace) for run_id in run_ids for workspace in ("a", "b")}) == 2 * len(run_ids)


@given(st.text(max_size=100))
def test_any_workspace_id_becomes_a_label(workspace):
    assert workspace_label(workspace)
    assert is_label_value(workspace_label(workspace))


def test_names_do_not_change():
    names = names_of("digits_1700000000_ab12cd34", 2, 2, "5f0c")
    assert names.service == "tm-digits-1700000000-ab12cd34-1e005d7a860c-2"
    assert names.pods == (f"{names.service}-0", f"{names.service}-1")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "options",
    [
        options_of(),
        options_of(gpus=2, **EVERYTHING),
        options_of(spread="prefer", cache={"kind": "claim", "name": "cache"}),
        options_of(run_as_user=0, cache={"kind": "node", "name": "/var/cache/tm"}),
        replace(options_of(), is_privileged=True, has_host_ipc=True, capabilities=("SYS_PTRACE",)),
    ],
    ids=["least", "everything", "prefer", "root", "docker"],
)
def test_manifests_are_valid(options, version):
    names = names_of("digits_1_ab", 1, 2, "ws-1")
    labels = labels_of("ws-1", names)
    volumes = [work_volume(options, "/trainmaster"), PodVolume("more", {"emptyDir": {}}, "/more", read_only=True)]
    pod = make_pod(names, 1, options, COMMAND, labels, OWNER, {"A": "1"}, volumes)
    for manifest in (make_service(names, labels), pod):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_validator_refuses_a_wrong_manifest():
    pod = pod_of(options_of())
    pod["spec"]["restartpolicy"] = "Never"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, VERSIONS[0], strict=True)


def test_a_pod_has_what_the_target_says():
    pod = pod_of(options_of(gpus=2, **EVERYTHING), number=1)
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert container["image"] == "registry.example.org:5000/team/torch:2.1"
    assert container["resources"]["requests"] == {"cpu": "5500m", "memory": "16Gi", "rdma/hca": "1", "amd.com/gpu": "2"}
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert spec["nodeSelector"] == {"zone": "a"}
    assert spec["priorityClassName"] == "high"
    assert spec["schedulerName"] == "volcano"
    assert spec["serviceAccountName"] == "trainer"
    assert spec["automountServiceAccountToken"] is True
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert {"name": "trainmaster-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in spec["volumes"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert set(mounts) == {"/dev/shm", "/mnt/shared", "/data", "/scratch", "/etc/settings", "/etc/keys"}
    assert mounts["/data"]["readOnly"]
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "2"
    assert pod["metadata"]["labels"]["team"] == "vision"


def test_a_pod_alone_is_no_group_of_kueue():
    pod = pod_of(options_of(queue="team-a"), count=1)
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert not any("pod-group" in name for name in (*pod["metadata"]["labels"], *pod["metadata"]["annotations"]))


def test_a_pod_requests_nothing_that_is_not_named():
    pod = pod_of(options_of())
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {}, "limits": {}}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert "securityContext" not in pod["spec"]
    assert not set(pod["spec"]) & {"nodeSelector", "tolerations", "affinity", "priorityClassName", "schedulerName"}


def test_cpus_are_limited_only_on_demand():
    container = pod_of(options_of(cpus="2", memory="4Gi"))["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}


def test_pods_of_users_keep_to_the_restricted_standard():
    pod = pod_of(options_of(run_as_user=1000))
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert "securityContext" not in pod_of(options_of(run_as_user=0))["spec"]["containers"][0]


def test_service_and_selectors_find_the_pods():
    names = names_of("digits_1_ab", 3, 2, "ws-1")
    labels = labels_of("ws-1", names)
    pod = make_pod(names, 1, options_of(), COMMAND, labels, OWNER)
    service = make_service(names, labels)
    found = pod["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= found.items()
    for selector in (selector_of("ws-1"), selector_of("ws-1", names)):
        assert dict(part.split("=") for part in selector.split(",")).items() <= found.items()
    assert (found[WORKSPACE], found[ATTEMPT], found[NODE]) == ("ws-1", "3", "1")
    assert found[RUN] == names.run
    assert pod["metadata"]["annotations"][RUN_ID] == "digits_1_ab"
    assert pod["spec"]["hostname"] == names.pods[1]
    assert pod["spec"]["subdomain"] == names.service
    created = {"metadata": {"name": names.service, "uid": "u1"}}
    assert owner_of(created) == {"apiVersion": "v1", "kind": "Service", "name": names.service, "uid": "u1"}


def test_pods_of_a_run_are_kept_apart():
    rule = pod_of(options_of(spread="require"))["spec"]["affinity"]["podAntiAffinity"]
    (term,) = rule["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"][ATTEMPT] == "1"


def test_a_patch_is_merged_by_names():
    options = options_of(
        tolerations=[{"key": "a", "operator": "Exists"}],
        pod_patch={
            "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
            "spec": {
                "containers": [
                    {"name": "node", "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]},
                    {"name": "proxy", "image": "proxy:1"},
                ],
                "tolerations": [{"key": "b", "operator": "Exists"}],
                "volumes": [{"name": "trainmaster-shm", "emptyDir": {"sizeLimit": "1Gi"}}],
                "enableServiceLinks": None,
            },
        },
    )
    pod = pod_of(options, env={"A": "1", "C": "4"})
    spec = pod["spec"]
    node, proxy = spec["containers"]
    assert node["env"] == [
        {"name": "A", "value": "2"},
        {"name": "C", "value": "4"},
        {"name": "B", "value": "3"},
    ]
    assert (node["command"], proxy) == (COMMAND, {"name": "proxy", "image": "proxy:1"})
    assert [each["key"] for each in spec["tolerations"]] == ["a", "b"]
    assert spec["volumes"] == [{"name": "trainmaster-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]
    assert "enableServiceLinks" not in spec
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert pod["metadata"]["annotations"][RUN_ID] == "digits_1_ab"


def test_a_patch_can_remove_an_item():
    patch = {"spec": {"containers": [{"name": "node", "env": [{"name": "A", "$patch": "delete"}]}]}}
    pod = pod_of(options_of(pod_patch=patch), env={"A": "1", "B": "2"})
    assert pod["spec"]["containers"][0]["env"] == [{"name": "B", "value": "2"}]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"kind": "Job"}, "'kind'"),
        ({"metadata": {"name": "x"}}, "metadata.name"),
        ({"metadata": {"labels": {RUN: "x"}}}, "labels that start with"),
        ({"metadata": {"labels": None}}, "labels that start with"),
        ({"metadata": {"annotations": {RUN_ID: None}}}, "annotations that start with"),
        ({"metadata": {"ownerReferences": []}}, "metadata.ownerReferences"),
        ({"spec": {"restartPolicy": "Always"}}, "spec.restartPolicy"),
        ({"spec": {"hostname": "x"}}, "spec.hostname"),
        ({"spec": {"containers": [{"name": "node", "command": ["sh"]}]}}, "changes the command"),
        ({"spec": {"containers": [{"name": "node", "args": ["x"]}]}}, "changes the args"),
        ({"spec": {"containers": [{"name": "node", "$patch": "delete"}]}}, "removes the container"),
        ({"spec": {"containers": ["node"]}}, "is not an object"),
    ],
)
def test_a_patch_that_breaks_a_run_is_refused(patch, words):
    with pytest.raises(ComputeTargetException, match="pod patch") as caught:
        pod_of(options_of(pod_patch=patch))
    assert words in caught.value.message


def test_a_patch_changes_only_a_copy():
    pod = pod_of(options_of(), env={"A": "1"})
    before = repr(pod)
    patched = patch_pod(pod, {"spec": {"containers": [{"name": "node", "env": [{"name": "A", "value": "2"}]}]}})
    assert repr(pod) == before
    assert re.search("'2'", repr(patched))
