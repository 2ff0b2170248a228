"""Why pods wait, in words. The texts are those of Kubernetes 1.20 to 1.34, taken from clusters and reports."""

from __future__ import annotations

import pytest

from trainmaster.engines.kubernetes.reasons import demand_words, pod_words, quota_words, waiting_words
from trainmaster.engines.kubernetes.unschedulable import explain_unschedulable


def pod(name: str = "tm-a-1-0", **parts: object) -> dict:
    spec = {"nodeName": "node1", **parts.pop("spec", {})}  # type: ignore[dict-item]
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Pending", **parts}}


def unscheduled(message: str, name: str = "tm-a-1-0") -> dict:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod(name, spec={"nodeName": None}, conditions=[condition])


def waiting(reason: str, message: str = "", image: str = "team/torch:9") -> dict:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return pod(containerStatuses=[{"name": "node", "image": image, "state": state}])


def event(reason: str, message: str, at: str = "2026-01-01T00:00:01Z", name: str = "tm-a-1-0") -> dict:
    return {"involvedObject": {"name": name}, "reason": reason, "message": message, "lastTimestamp": at}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        # 1.20, from a cluster
        ("0/2 nodes are available: 2 Insufficient cpu.", "0/2 are available (2 lack CPUs)"),
        ("0/2 nodes are available: 2 Insufficient memory.", "0/2 are available (2 lack memory)"),
        (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity.",
            "0/2 are available (2 do not match the node selector)",
        ),
        (
            "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity.",
            "0/2 are available (1 lacks memory, 1 does not match the node selector)",
        ),
        # 1.18 and older texts, which some schedulers still have
        (
            "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match node selector.",
            "0/2 are available (1 lacks memory, 1 does not match the node selector)",
        ),
        (
            "0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had taint {dedicated: infra}, that the "
            "pod didn't tolerate.",
            "0/5 are available (3 lack nvidia.com/gpu, 2 have a taint the run does not tolerate: dedicated=infra)",
        ),
        (
            "0/4 nodes are available: 1 node(s) had taint {node-role.kubernetes.io/master: }, that the pod didn't "
            "tolerate, 1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu.",
            "0/4 are available (1 is reserved for the control plane, 1 is cordoned, 2 lack nvidia.com/gpu)",
        ),
        # 1.24 and newer
        (
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: 1 No "
            "preemption victims found for incoming pod..",
            "0/1 are available (1 lacks nvidia.com/gpu)",
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: }. preemption: 0/1 nodes are available: 1 "
            "Preemption is not helpful for scheduling..",
            "0/1 are available (1 has a taint the run does not tolerate: gpu)",
        ),
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 node(s) "
            "didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not "
            "helpful for scheduling.",
            "0/3 are available (1 is unreachable, 2 do not match the node selector)",
        ),
        # 1.32 and newer
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to "
            "deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            "0/3 are available (1 has a taint the run does not tolerate, 2 lack CPUs)",
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
            "0/3 are available (3 are kept free of further pods of the run)",
        ),
        ("0/3 nodes are available: 3 Too many pods.", "0/3 are available (3 have too many pods)"),
        (
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            "0/3 are available (3 cannot reach the volume)",
        ),
        # Of another scheduler
        (
            "0/2 nodes are available: 1 Insufficient memory, 1 Pod is waiting for preemptible or free resource to "
            "appear.",
            "0/2 are available (1 lacks memory, 1 Pod is waiting for preemptible or free resource to appear)",
        ),
        (
            "3/4 tasks in gang unschedulable: pod group is not ready",
            "3/4 tasks in gang unschedulable: pod group is not",
        ),
    ],
)
def test_what_the_scheduler_says(message, words):
    assert explain_unschedulable(message).startswith(f"waiting for nodes: {words}")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('0/2 nodes are available: 2 persistentvolumeclaim "shared" not found.', "there is no claim 'shared'"),
        ('persistentvolumeclaim "shared" not found', "there is no claim 'shared'"),
        (
            "0/2 nodes are available: 2 pod has unbound immediate PersistentVolumeClaims.",
            "a claim of the run is not bound to a volume",
        ),
        (
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are "
            "available: 3 Preemption is not helpful for scheduling..",
            "a claim of the run is not bound to a volume",
        ),
    ],
)
def test_volumes_that_are_missing(message, words):
    assert explain_unschedulable(message) == f"waiting for a volume: {words}"


def test_the_scheduler_has_not_looked_yet():
    assert pod_words(pod(spec={"nodeName": None})) == "waiting for the scheduler of the cluster"
    events = [event("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.")]
    assert pod_words(pod(spec={"nodeName": None}), events) == "waiting for nodes: 0/2 are available (2 lack CPUs)"


def test_others_are_being_preempted():
    found = pod(spec={"nodeName": None}, nominatedNodeName="node1")
    assert pod_words(found) == "waiting for pods of lower priority to leave node1"


def test_a_queue_has_not_admitted_the_run():
    gated = pod(spec={"nodeName": None, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    gated["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team-a"}
    assert pod_words(gated) == "waiting for Kueue to admit the run to the queue 'team-a'"
    other = pod(spec={"nodeName": None, "schedulingGates": [{"name": "example.org/wait"}]})
    assert pod_words(other) == "waiting for the scheduling gate example.org/wait"


PULL_120 = (
    'Failed to pull image "team/torch:9": rpc error: code = Unknown desc = failed to pull and unpack image '
    '"docker.io/team/torch:9": failed to resolve reference "docker.io/team/torch:9": pull access denied, repository '
    "does not exist or may require authorization: server message: insufficient_scope: authorization failed"
)


def test_an_image_cannot_be_pulled():
    events = [
        event("Failed", PULL_120, "2026-01-01T00:00:02Z"),
        event("Failed", "Error: ErrImagePull", "2026-01-01T00:00:03Z"),
        event("BackOff", 'Back-off pulling image "team/torch:9"', "2026-01-01T00:00:04Z"),
    ]
    words = waiting_words([waiting("ImagePullBackOff", 'Back-off pulling image "team/torch:9"')], events)
    assert words == (
        "the image cannot be pulled: team/torch:9: pull access denied, repository does not exist or may require "
        "authorization: server message: insufficient_scope: authorization failed"
    )


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        (
            # 1.31 and newer
            "ImagePullBackOff",
            'Back-off pulling image "ghcr.io/a/b:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull '
            'and unpack image "ghcr.io/a/b:1": failed to resolve reference "ghcr.io/a/b:1": ghcr.io/a/b:1: not found',
            "ghcr.io/a/b:1: not found",
        ),
        (
            # Docker's own service, up to 1.23
            "ErrImagePull",
            "rpc error: code = Unknown desc = Error response from daemon: pull access denied for ghcr.io/a/b:1, "
            "repository does not exist or may require 'docker login'",
            "pull access denied for ghcr.io/a/b:1, repository does not exist or may require 'docker login'",
        ),
        ("ErrImageNeverPull", 'Container image "ghcr.io/a/b:1" is not present with pull policy of Never', "Container"),
        ("InvalidImageName", 'Failed to apply default image tag "ghcr.io/a/b:1": couldn\'t parse', "Failed to apply"),
        ("ImagePullBackOff", "", "ghcr.io/a/b:1: ImagePullBackOff"),
    ],
)
def test_what_a_registry_says(reason, message, words):
    said = pod_words(waiting(reason, message, "ghcr.io/a/b:1"))
    assert said.startswith(f"the image cannot be pulled: {words}")


def test_a_container_cannot_be_created():
    found = waiting("CreateContainerConfigError", 'secret "keys" not found')
    assert pod_words(found) == 'the container cannot be created: secret "keys" not found'


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "node1 is creating the container"),
        ([("Scheduled", "Successfully assigned a/b to node1")], "node1 is creating the container"),
        ([("Pulling", 'Pulling image "team/torch:9"')], 'node1 is pulling image "team/torch:9"'),
        (
            [("Pulling", 'Pulling image "a"'), ("Pulled", 'Successfully pulled image "a" in 3s')],
            "node1 is creating the container",
        ),
        (
            [("FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "keys" not found')],
            'waiting for a volume on node1: MountVolume.SetUp failed for volume "v" : secret "keys" not found',
        ),
        (
            [("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) b')],
            "waiting for a volume on node1: Multi-Attach error",
        ),
        (
            [("FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: no IP addresses available")],
            "waiting for the network of the pod on node1: Failed to create pod sandbox",
        ),
    ],
)
def test_a_container_is_being_created(events, words):
    found = [event(reason, message, f"2026-01-01T00:00:0{n}Z") for n, (reason, message) in enumerate(events)]
    assert waiting_words([waiting("ContainerCreating")], reversed(found)).startswith(words)


def test_newer_events_have_other_times():
    old = event("Pulling", 'Pulling image "a"', "2026-01-01T00:00:01Z")
    new = {**event("FailedMount", "no"), "lastTimestamp": None, "eventTime": "2026-01-01T00:00:02.5Z"}
    assert waiting_words([waiting("ContainerCreating")], [new, old]) == "waiting for a volume on node1: no"


def test_pods_that_run_wait_for_nothing():
    running = pod(phase="Running")
    assert waiting_words([running]) == ""
    assert waiting_words([]) == ""


def test_only_some_pods_wait():
    pods = [unscheduled("0/2 nodes are available: 2 Insufficient cpu.", f"p{n}") for n in range(3)]
    one = pod("p9", phase="Running")
    words = "waiting for nodes: 0/2 are available (2 lack CPUs)"
    assert waiting_words(pods) == words
    assert waiting_words([*pods, one]) == f"{words} (3 of 4 pods)"


def test_a_quota_is_used_up():
    # 1.20, from a cluster
    message = (
        'pods "a" is forbidden: exceeded quota: compute, requested: limits.memory=2Gi,requests.cpu=2, used: '
        "limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=1"
    )
    assert quota_words(message) == (
        "waiting for the quota 'compute' of the namespace: 2Gi of limits.memory needed, 0 of 1Gi in use; 2 of "
        "requests.cpu needed, 0 of 1 in use"
    )
    assert quota_words('pods "a" is forbidden: unknown') == ""


def test_a_quota_demands_more_settings():
    message = 'pods "a" is forbidden: failed quota: compute: must specify limits.memory,requests.cpu'
    assert demand_words(message).startswith("the quota 'compute' of the namespace demands limits.memory, requests.cpu")
    # 1.25 and newer name the container.
    newer = 'pods "a" is forbidden: failed quota: compute: must specify limits.memory for: node; requests.cpu for: node'
    assert "limits.memory for: node, requests.cpu for: node" in demand_words(newer)
    assert demand_words("something else") == ""
