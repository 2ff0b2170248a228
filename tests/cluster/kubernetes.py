"""A real Kubernetes cluster on this one machine: an API server, a scheduler and two nodes with real containers.

    with Cluster(nodes=2) as cluster, cluster.create_namespace("mine") as namespace:
        cluster.kubectl("get", "nodes")
        cluster.kill_node("node1")          # its power fails
        cluster.start_node("node1")
        cluster.kill("kube-apiserver")      # kill -9
        cluster.start("kube-apiserver")

`minik8s.sh` does the work; Kubernetes is compiled once per machine, into a cache folder. Two clusters may run at once:
each has a network of its own, whose lock says that it is taken. A guard process takes the cluster down when this
process ends, however it ends; if the guard was killed too, the next cluster that gets the network cleans up first.

Tests use the fixtures `kubernetes_cluster` and `kubernetes_namespace`. All files that use them run in one process
(`tests/parallel.py`), so that no other file has pods on a node that a test switches off.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.kubernetes_binaries import SCRIPT, TAIL, CannotHaveCluster, binaries, build, cache, require_machine
from tests.cluster.kubernetes_namespace import CLAIM, ROLE, Namespace, furnish
from tests.conftest import until

GPU = "nvidia.com/gpu"
RUNNING = "KUBERNETES_NETWORK"
"""The variable with the network of a cluster that runs already."""


class Cluster:
    """A cluster for as long as the context lasts."""

    def __init__(self, nodes: int = 2) -> None:
        self._count = nodes
        self._ends = contextlib.ExitStack()
        self.network = ""
        self.state = Path()

    @classmethod
    def running(cls, network: str) -> Cluster:
        """The cluster of another process."""
        cluster = cls()
        cluster.network, cluster.state = network, _folder() / network
        return cluster

    def __enter__(self) -> Cluster:
        require_machine()
        build()
        with contextlib.ExitStack() as ends:
            self.network, lock = ends.enter_context(_own_network())
            self.state = _folder() / self.network
            # Of a cluster whose tests and guard were killed.
            self._script("down")
            ends.enter_context(self._guard(lock))
            self._script("up")
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    @property
    def kubeconfig(self) -> str:
        """The administrator's."""
        return str(self.state / "pki" / "admin.conf")

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{self.network}.0.1:6443"

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes."""
        return [f"node{number + 1}" for number in range(self._count)]

    def kubectl(self, *words: str, text: str | None = None) -> str:
        """What `kubectl` prints, as the administrator."""
        done = subprocess.run(self.command(*words), input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def command(self, *words: str) -> list[str]:
        """`kubectl` for a process of one's own."""
        return [str(binaries() / "bin" / "kubectl"), "--kubeconfig", self.kubeconfig, *words]

    @contextlib.contextmanager
    def create_namespace(self, name: str, role: Path = ROLE) -> Iterator[Namespace]:
        """A new namespace with a service account that has exactly the rights of `role`, and a claim on a folder."""
        with tempfile.TemporaryDirectory(prefix="tm-claim-", dir=self.state) as scratch:
            folder = Path(scratch) / "claim"
            folder.mkdir()
            namespace = Namespace(name, f"{scratch}/kubeconfig", folder, self)
            self.kubectl("create", "namespace", name)
            try:
                furnish(namespace, role)
                yield namespace
            finally:
                self.kubectl("delete", "namespace", name, "--wait=false")
                self.kubectl("delete", "persistentvolume", f"{name}-{CLAIM}", "--wait=false", "--ignore-not-found")

    def add_image(self, name: str, folder: Path) -> None:
        """Makes a folder an image that every node has."""
        self._script("image", name, str(folder))

    def offer_gpus(self, count: int) -> None:
        """Nodes say that they have so many GPUs. A kubelet that starts again says that it has none."""
        patch = json.dumps({"status": {"capacity": {GPU: str(count)}}})
        for node in self.nodes:
            self._patch_status(f"/api/v1/nodes/{node}/status", patch)
        for node in self.nodes:
            until(lambda node=node: self._allocatable(node) == str(count), what=f"GPUs on {node}")

    def kill_node(self, node: str) -> None:
        """Its power fails: every process is gone, and nobody is told."""
        self._script("node", "kill", node)

    def start_node(self, node: str, wait: bool = True) -> None:
        """Switches it on; returns when it is ready for pods, and has forgotten those it had."""
        self._script("node", "start", node)
        if wait:
            self.wait_for_node(node)

    def kill_container(self, namespace: str, pod: str) -> bool:
        """Kill -9 of a pod's first process, and thereby of all its processes; false if it has none."""
        found = json.loads(self.kubectl("--namespace", namespace, "get", "pod", pod, "--output", "json"))
        statuses = found["status"].get("containerStatuses") or [{}]
        container = statuses[0].get("containerID", "").rpartition("/")[2]
        for each in Path("/proc").iterdir():
            if container and each.name.isdecimal() and _is_first(each, container):
                os.kill(int(each.name), signal.SIGKILL)
                return True
        return False

    def partition(self, node: str) -> None:
        """Pulls its cable."""
        self._script("node", "partition", node)

    def heal(self, node: str) -> None:
        """Plugs the cable in again."""
        self._script("node", "heal", node)

    def stop_kubelet(self, node: str) -> None:
        """Its containers go on; nobody looks after them."""
        self._script("node", "kubelet-stop", node)

    def start_kubelet(self, node: str) -> None:
        self._script("node", "kubelet-start", node)

    def kill(self, component: str) -> None:
        """Kill -9 of a component of the control plane."""
        self._script("kill", component)

    def start(self, component: str) -> None:
        """Start it again, or do nothing if it runs. The API server is waited for."""
        self._script("start", component)
        if component == "kube-apiserver":
            until(lambda: self._asks("get", "--raw", "/readyz"), what="the API server")

    def wait_for_node(self, node: str) -> None:
        """Returns when a node's kubelet has reported from now on, and the node is ready and has no taint."""
        begin = datetime.now(UTC)
        until(lambda: self._last_report(node) > begin, seconds=240, what=f"a report of {node}")
        until(lambda: self._is_ready(node), seconds=240, what=f"{node}, ready")

    def processes(self, containing: str) -> list[str]:
        """The command lines of processes in containers, on any node, with a text in their command or environment."""
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdecimal() and (command := _command_with(each, containing.encode(), self._mark)):
                found.append(command)
        return found

    @property
    def _mark(self) -> bytes:
        # In the paths of the cgroups of all containers.
        return f"/mk{self.network.replace('.', 'x')}-node".encode()

    def _last_report(self, node: str) -> datetime:
        with contextlib.suppress(AssertionError):
            lease = json.loads(self.kubectl("--namespace=kube-node-lease", "get", "lease", node, "--output=json"))
            return datetime.fromisoformat(lease["spec"]["renewTime"])
        return datetime.min.replace(tzinfo=UTC)

    def _is_ready(self, node: str) -> bool:
        with contextlib.suppress(AssertionError):
            found = json.loads(self.kubectl("get", "node", node, "--output", "json"))
            conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
            return conditions["Ready"] == "True" and not found["spec"].get("taints")
        return False

    def _asks(self, *words: str) -> bool:
        with contextlib.suppress(AssertionError):
            return bool(self.kubectl("--request-timeout=5s", *words))
        return False

    def _allocatable(self, node: str) -> str:
        found = json.loads(self.kubectl("get", "node", node, "--output", "json"))
        return str(found["status"]["allocatable"].get(GPU, ""))

    def _patch_status(self, path: str, patch: str) -> None:
        """`kubectl` of this release cannot patch a status."""
        context = ssl.create_default_context(cafile=str(self.state / "pki" / "ca.crt"))
        context.load_cert_chain(self.state / "pki" / "admin.crt", self.state / "pki" / "admin.key")
        head = {"Content-Type": "application/merge-patch+json"}
        asked = urllib.request.Request(self.server + path, patch.encode(), head, method="PATCH")
        with urllib.request.urlopen(asked, context=context, timeout=60) as answer:
            answer.read()

    def _script(self, *words: str) -> None:
        log = self.state.parent / f"{self.network}.log"
        with open(log, "a") as output:
            done = subprocess.run(
                ["bash", str(SCRIPT), *words],
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        if done.returncode:
            raise CannotHaveCluster(f"minik8s.sh {' '.join(words)} failed:\n{log.read_text()[-TAIL:]}")

    @contextlib.contextmanager
    def _guard(self, lock: int) -> Iterator[None]:
        """Takes the cluster down at the end of this context or of this process. It holds the lock until then."""
        guard = subprocess.Popen(
            ["bash", str(SCRIPT), "guard"],
            env=self._variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lock],
        )
        try:
            yield
        finally:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait()

    @property
    def _variables(self) -> dict[str, str]:
        return {
            **os.environ,
            "MINIK8S_CACHE": str(cache()),
            "MINIK8S_STATE": str(self.state),
            "MINIK8S_NET": self.network,
            "MINIK8S_NODES": str(self._count),
        }


@contextlib.contextmanager
def any_cluster() -> Iterator[Cluster]:
    """A new cluster, or the one that `python -m tests.cluster.kubernetes` keeps running (`KUBERNETES_NETWORK`)."""
    if network := os.environ.get(RUNNING):
        yield Cluster.running(network)
        return
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes_cluster() -> Iterator[Cluster]:
    """One cluster for all tests."""
    with any_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kubernetes_namespace(request: pytest.FixtureRequest, kubernetes_cluster: Cluster) -> Iterator[Namespace]:
    """A namespace for one file of tests."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")
    with kubernetes_cluster.create_namespace(f"{name}-{uuid.uuid4().hex[:6]}") as namespace:
        yield namespace


def _folder() -> Path:
    place = Path(tempfile.gettempdir()) / f"trainmaster-tests-kubernetes-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@contextlib.contextmanager
def _own_network() -> Iterator[tuple[str, int]]:
    """The first two numbers of a network that no other cluster has and this machine does not use, and its lock."""
    for number in range(98, 40, -1):
        network = f"10.{number}"
        lock = os.open(_folder() / f"{network}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Unless the addresses are those of a cluster that nobody guards any more.
            if _is_used(network) and not (_folder() / network).exists():
                continue
            yield network, lock
            return
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
    raise CannotHaveCluster("all networks for clusters are taken")


def _is_used(network: str) -> bool:
    routes = subprocess.run(["ip", "route", "show"], check=True, capture_output=True, text=True).stdout
    return any(word.startswith(f"{network}.") for word in routes.split())


def _is_first(process: Path, container: str) -> bool:
    """Whether it is the first process of a container."""
    with contextlib.suppress(OSError):
        if container in (process / "cgroup").read_text():
            numbers = next(line for line in (process / "status").read_text().splitlines() if line.startswith("NSpid:"))
            return numbers.split()[-1] == "1"
    return False


def _command_with(process: Path, text: bytes, mark: bytes) -> str:
    """The command of a process of a container if it or its variables have a text in them."""
    with contextlib.suppress(OSError):
        if mark not in (process / "cgroup").read_bytes():
            return ""
        command = (process / "cmdline").read_bytes()
        if text in command or text in (process / "environ").read_bytes():
            return command.replace(b"\0", b" ").decode(errors="replace")
    return ""


def _look_around(words: Sequence[str]) -> None:
    """To look around by hand: python -m tests.cluster.kubernetes [NAMESPACE]."""
    with Cluster() as cluster, cluster.create_namespace(*(words or ["mine"])) as namespace:
        print(f"export KUBECONFIG={cluster.kubeconfig} PATH={binaries()}/bin:$PATH", flush=True)
        print(f"# tests use this cluster with {RUNNING}={cluster.network}", flush=True)
        print(f"# the service account of namespace {namespace.name}: {namespace.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    _look_around(sys.argv[1:])
