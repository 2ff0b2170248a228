"""How pods end, from their state. The states are those of Kubernetes 1.20 to 1.34, taken from clusters and reports."""

from __future__ import annotations

import pytest

from trainmaster.engines.kubernetes.endings import ending_of, explain_deletion
from trainmaster.shared.records import Status

NOW = 1_800_000_000.0
LONG_AGO, JUST_NOW = "2027-01-15T07:00:00Z", "2027-01-15T08:00:00Z"


def pod(phase: str = "Failed", limit: str = "", deletion: str = "", **status: object) -> dict:
    resources = {"limits": {"memory": limit}} if limit else {}
    return {
        "metadata": {"name": "tm-a-1-1", **({"deletionTimestamp": deletion} if deletion else {})},
        "spec": {
            "nodeName": "node2",
            "activeDeadlineSeconds": 5,
            "containers": [{"name": "node", "image": "team/torch:9", "resources": resources}],
        },
        "status": {"phase": phase, **status},
    }


def ended(reason: str = "Error", message: str = "", code: int = 1, **more: object) -> dict:
    state = {"terminated": {"reason": reason, "message": message, "exitCode": code}}
    return pod(containerStatuses=[{"name": "node", "state": state}], **more)  # type: ignore[arg-type]


def stuck(reason: str, message: str = "", since: str = LONG_AGO) -> dict:
    state = {"waiting": {"reason": reason, "message": message}}
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
    return pod(
        "Pending",
        conditions=[condition],
        containerStatuses=[{"name": "node", "image": "team/torch:9", "state": state}],
    )


def disrupted(reason: str, message: str) -> dict:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return pod("Running", deletion="2026-01-01T00:00:00Z", conditions=[condition])


def test_a_pod_that_goes_on_or_ends_by_itself_has_no_ending_of_ours():
    assert ending_of(pod("Running"), 0) is None
    assert ending_of(pod("Pending"), 0, now=NOW) is None
    assert ending_of(ended("Completed", code=0), 0) is None
    assert ending_of(ended("Error", "last words", 3), 0) is None
    assert ending_of(ended("Error", "", 137), 0) is None


def test_too_much_memory():
    found = ending_of(ended("OOMKilled", code=137, limit="64Mi"), 1)
    assert found is not None and found.error is not None
    assert (found.status, found.error.code, found.again) == (Status.FAILED, "OutOfMemory", False)
    assert found.error.message == (
        "node 1 of the run (pod tm-a-1-1 on node2) used more memory than its limit of 64Mi (OOMKilled)"
    )
    assert found.error.details == {"node": 1, "host": "node2"}
    unlimited = ending_of(ended("OOMKilled", code=137), 1)
    assert unlimited is not None and "than its machine had" in unlimited.error.message


OCI = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        (
            "StartError",
            OCI + 'unable to start container process: exec: "python3": executable file not found in $PATH: unknown',
            "its image team/torch:9 has no program 'python3'",
        ),
        (
            "StartError",
            OCI
            + 'unable to start container process: exec: "/opt/py": stat /opt/py: no such file or directory: unknown',
            "its image team/torch:9 has no program '/opt/py'",
        ),
        (
            # dockershim, up to 1.23
            "ContainerCannotRun",
            'OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "python3": '
            "executable file not found in $PATH: unknown",
            "its image team/torch:9 has no program 'python3'",
        ),
        ("Error", "exec /usr/bin/python3: exec format error\n", "is for another kind of processor"),
        (
            "Error",
            "standard_init_linux.go:228: exec user process caused: exec format error\n",
            "is for another kind of processor",
        ),
        (
            "StartError",
            OCI + 'unable to start container process: exec: "/etc/passwd": permission denied: unknown',
            "permission denied",
        ),
    ],
)
def test_a_container_could_not_start(reason, message, words):
    found = ending_of(ended(reason, message, 128), 0)
    assert found is not None and found.error is not None
    assert (found.error.code, found.again) == ("StartError", False)
    assert words in found.error.message


SHIM = "failed to create containerd task: failed to create shim: "
RESERVED = 'failed to reserve container name "node_tm-a-1-1": name "node_tm-a-1-1" is reserved for "8f3c"'
DEADLINE = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("StartError", "context canceled: unknown"),
        ("StartError", SHIM + "context canceled: unknown"),
        ("StartError", SHIM + "OCI runtime create failed: runc create failed: signal: killed: unknown"),
        ("StartError", 'failed to start containerd task "8f3c": ttrpc: closed: unknown'),
        ("ContainerCannotRun", "rpc error: code = Unavailable desc = transport is closing"),
    ],
)
def test_a_machine_was_interrupted_while_it_started_the_container(reason, message):
    """As when its kubelet is killed: the run is not at fault."""
    found = ending_of(ended(reason, message, 128), 0)
    assert found is not None and found.error is not None
    assert (found.error.code, found.again) == ("StartInterrupted", True)
    assert message in found.error.message


@pytest.mark.parametrize("message", [RESERVED, DEADLINE, "rpc error: code = Unavailable desc = connection refused"])
@pytest.mark.parametrize("reason", ["CreateContainerError", "RunContainerError"])
def test_an_interrupted_machine_may_try_again_for_a_time(reason, message):
    """Its kubelet tries again. If that does not help, another pod does."""
    assert ending_of(stuck(reason, message, JUST_NOW), 0, now=NOW) is None
    found = ending_of(stuck(reason, message, LONG_AGO), 0, now=NOW)
    assert found is not None and found.error is not None
    assert (found.error.code, found.again) == ("StartInterrupted", True)


def test_an_init_container_failed():
    status = {"name": "first", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
    waiting = {"name": "node", "state": {"waiting": {"reason": "PodInitializing"}}}
    found = ending_of(pod(initContainerStatuses=[status], containerStatuses=[waiting]), 0)
    assert found is not None and found.error is not None and found.error.code == "OutOfMemory"


@pytest.mark.parametrize(
    ("message", "again"),
    [
        (
            "The node was low on resource: memory. Container node was using 35505620Ki, which exceeds its request of "
            "12Gi. ",
            False,
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi. Container node was "
            "using 9402820Ki, request is 7G, has larger consumption of memory. ",
            False,
        ),
        ('Usage of EmptyDir volume "e" exceeds the limit "10Mi". ', False),
        ("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ", False),
        ('Container node exceeded its local ephemeral storage limit "1Gi". ', False),
        ("The node had condition: [DiskPressure]. ", True),
        ("The node was low on resource: ephemeral-storage. ", True),
        ("", True),
    ],
)
def test_evicted(message, again):
    found = ending_of(pod(reason="Evicted", message=message), 1)
    assert found is not None and found.error is not None
    assert (found.status, found.error.code, found.again) == (Status.FAILED, "Evicted", again)
    assert message.strip() in found.error.message


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("NodeLost", "Node node2 which was running pod tm-a-1-1 is unresponsive", "NodeLost"),
        ("Shutdown", "Node is shutting, evicting pods", "NodeShutdown"),
        ("NodeShutdown", "Pod was rejected as the node is shutting down.", "NodeShutdown"),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", "NodeShutdown"),
        (
            "OutOfcpu",
            "Pod Node didn't have enough resource: cpu, requested: 4000, used: 0, capacity: 2000",
            "PodRefused",
        ),
        ("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu", "PodRefused"),
        (
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices",
            "PodRefused",
        ),
        ("Preempting", "Preempted in order to admit critical pod", "Preempted"),
    ],
)
def test_a_machine_is_lost(reason, message, code):
    found = ending_of(pod(reason=reason, message=message), 1)
    assert found is not None and found.error is not None
    assert (found.error.code, found.again) == (code, True)
    assert message in found.error.message


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod", "Preempted"),
        ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", "NodeLost"),
        ("EvictionByEvictionAPI", "Eviction API: evicting", "Evicted"),
        ("DeletionByPodGC", "PodGC: node no longer exists", "NodeLost"),
        ("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.", "Evicted"),
        ("SomethingNew", "nobody knows", "PodLost"),
    ],
)
def test_newer_servers_say_why_a_pod_is_deleted(reason, message, code):
    found = ending_of(disrupted(reason, message), 1)
    assert found is not None and found.error is not None
    assert (found.error.code, found.again) == (code, True)
    assert message in found.error.message


def test_older_servers_say_it_by_events():
    # 1.20, from a cluster
    preempted = {"reason": "Preempted", "message": "Preempted by k4/mid on node node1"}
    found = ending_of(pod("Running", deletion=JUST_NOW), 1, [preempted])
    assert found is not None and found.error is not None
    assert (found.error.code, found.again) == ("Preempted", True)
    assert "by k4/mid on node node1" in found.error.message
    tainted = {"reason": "TaintManagerEviction", "message": "Marking for deletion Pod k4/tm-a-1-1"}
    lost = explain_deletion(pod("Running"), 1, [tainted])
    assert lost.error is not None and (lost.error.code, lost.again) == ("NodeLost", True)


def test_deleted_by_somebody():
    for found in (ending_of(pod("Running", deletion=JUST_NOW), 1), explain_deletion(pod("Running"), 1)):
        assert found is not None and found.error is not None
        assert (found.error.code, found.again) == ("PodDeleted", True)
        assert "not by Trainmaster" in found.error.message


def test_the_time_limit_of_a_pod():
    found = ending_of(pod(reason="DeadlineExceeded", message="Pod was active on the node longer than"), 1)
    assert found is not None and found.error is not None
    assert (found.status, found.error.code) == (Status.CANCELED, "KubernetesTimeLimit")
    assert "time limit of 5 s" in found.error.message


@pytest.mark.parametrize(
    ("reason", "message", "since", "code"),
    [
        ("InvalidImageName", "couldn't parse image reference", JUST_NOW, "ImageError"),
        ("ErrImagePull", "manifest unknown", LONG_AGO, "ImageError"),
        ("ErrImagePull", "manifest unknown", JUST_NOW, None),
        ("ImagePullBackOff", "dial tcp: i/o timeout", LONG_AGO, "ImageError"),
        ("ImagePullBackOff", "dial tcp: i/o timeout", "2027-01-15T07:58:00Z", None),
        ("ImagePullBackOff", "pull access denied", "2027-01-15T07:58:00Z", "ImageError"),
        ("CreateContainerConfigError", 'secret "keys" not found', LONG_AGO, "StartError"),
        ("CreateContainerConfigError", 'secret "keys" not found', JUST_NOW, None),
        ("RunContainerError", OCI + 'exec: "python3": executable file not found in $PATH', JUST_NOW, "StartError"),
        ("ContainerCreating", "", LONG_AGO, None),
    ],
)
def test_a_pod_that_cannot_start_fails_after_a_time(reason, message, since, code):
    found = ending_of(stuck(reason, message, since), 0, now=NOW)
    assert (found.error.code if found is not None and found.error is not None else None) == code
    if found is not None:
        assert not found.again
        assert message in found.error.message  # type: ignore[union-attr]
    # Without a clock, only what can never work fails.
    assert (ending_of(stuck(reason, message, since), 0) is not None) == (
        reason in ("InvalidImageName", "RunContainerError")
    )
