"""The cluster for tests itself: the rights of its accounts, and that it goes however the tests end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.kubernetes import Cluster
from tests.cluster.kubernetes_binaries import binaries
from tests.conftest import until

IN_FULL = "KUBERNETES_IN_FULL" in os.environ
OWNER = """
import signal
from tests.cluster.kubernetes import Cluster
with Cluster(nodes=1) as cluster:
    print(cluster.state, flush=True)
    signal.pause()
"""


def may(namespace, *words):
    """Whether the account may do something."""
    command = [str(binaries() / "bin" / "kubectl"), "--kubeconfig", namespace.kubeconfig, "auth", "can-i", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() in ("yes", "no"), done.stderr
    return done.stdout.strip() == "yes"


def test_the_account_has_the_rights_of_the_role_only(kubernetes_namespace):
    assert may(kubernetes_namespace, "create", "pods")
    assert may(kubernetes_namespace, "get", "pods", "--subresource=exec")
    assert not may(kubernetes_namespace, "get", "secrets")
    assert not may(kubernetes_namespace, "list", "nodes")
    assert not may(kubernetes_namespace, "create", "pods", "--namespace=default")


def test_pods_of_all_nodes_and_this_machine_see_the_claim(kubernetes_cluster, kubernetes_namespace):
    for node in kubernetes_cluster.nodes:
        kubernetes_namespace.kubectl("apply", "--filename", "-", text=_writer(node))
    folder = kubernetes_namespace.folder
    until(lambda: sorted(each.name for each in folder.iterdir()) == kubernetes_cluster.nodes, what="both files")


def _writer(node: str) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: on-{node}}}
spec:
  nodeName: {node}
  restartPolicy: Never
  volumes: [{{name: shared, persistentVolumeClaim: {{claimName: shared}}}}]
  containers:
  - name: main
    image: minik8s.local/busybox:1
    command: [touch, /claim/{node}]
    volumeMounts: [{{name: shared, mountPath: /claim}}]
"""


@contextlib.contextmanager
def owned():
    """Another process with a cluster, and the folder of the cluster; both are killed at the end."""
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        yield owner.pid, Path(owner.stdout.readline().strip())
        owner.send_signal(signal.SIGKILL)


if IN_FULL:

    def test_a_second_cluster_is_gone_when_its_owner_was_killed(kubernetes_cluster):
        with owned() as (_, state):
            assert state != kubernetes_cluster.state
            assert (state / "pki" / "admin.conf").exists()
        until(lambda: not state.exists(), what="the end of the cluster")
        mark = f"mk{state.name.replace('.', 'x')}"
        assert mark not in subprocess.run(["ip", "link"], check=True, capture_output=True, text=True).stdout
        assert kubernetes_cluster.kubectl("get", "nodes")

    def test_the_next_cluster_cleans_up_after_one_without_a_guard():
        with owned() as (pid, state):
            for guard in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                os.kill(int(guard), signal.SIGKILL)
        assert (state / "pki" / "admin.conf").exists()
        with Cluster(nodes=1):
            pass
        until(lambda: not state.exists(), what="the end of the cluster")
