"""Runs on a real Kubernetes: what pods run, why they wait, how they end, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import signal

import pytest
from tests.cluster.kubernetes import GPU
from tests.cluster.kubernetes_namespace import IMAGE, create_target
from tests.conftest import end_workspace, ended, until

from trainmaster import (
    Estimator,
    Experiment,
    Gloo,
    GridParameterSampling,
    HyperDriveConfig,
    Mpi,
    ParameterServer,
    PrimaryMetricGoal,
    Workspace,
    choice,
)
from trainmaster.shared.folders import WorkspaceFolder

HEAD = "import os, signal, socket, sys, time\nfrom trainmaster import Run\nrun = Run.get_context()\n"
WAITS = HEAD + "print('here', flush=True)\nrun.log('begun', 1)\ntime.sleep(3600)\n"
# Waits in its first attempt, ends in its second.
TWICE = (
    HEAD
    + """
attempt = int(os.environ['TRAINMASTER_ATTEMPT'])
print('here', flush=True)
run.log('attempt', attempt)
time.sleep(3600 if attempt == 1 else 0)
"""
)
COUNTS = (
    HEAD
    + """
for number in range(60):
    print('line', number)
    run.log('number', number)
    time.sleep(0.1)
"""
)
LOG = "azureml-logs/70_driver_log.txt"
# A pod of somebody else.
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"}}


@pytest.fixture(scope="module")
def ws(tmp_path_factory, kubernetes_namespace):
    workspace = Workspace.create("pods", path=tmp_path_factory.mktemp("pods") / "ws", show_output=False)
    create_target(workspace, "cluster", kubernetes_namespace)
    yield workspace
    end_workspace(workspace.path)
    kubernetes_namespace.wait_until_empty()


@pytest.fixture
def target(ws, kubernetes_namespace):
    """Creates targets with other settings."""

    def create(name, **settings):
        create_target(ws, name, kubernetes_namespace, **settings)
        return name

    return create


@pytest.fixture
def send(ws, tmp_path):
    runs = []

    def submit(script, kind=Estimator, **settings):
        source = tmp_path / f"source{len(runs)}"
        source.mkdir()
        (source / "train.py").write_text(script)
        if "pip_packages" not in settings:
            settings["user_managed"] = True
        estimator = kind(str(source), entry_script="train.py", **{"compute_target": "cluster", **settings})
        runs.append(Experiment(ws, "kubernetes").submit(estimator))
        return runs[-1]

    yield submit
    # A test that failed must not keep what the next one needs.
    for run in runs:
        run.cancel()
    for run in runs:
        ended(run)


def log(run, rank=None):
    name = LOG if rank is None else LOG.replace(".txt", f"_{rank}.txt")
    return run.get_details_with_logs()["logFiles"].get(name, "")


def at_work(run, ranks=(0,)):
    """Waits until all ranks have logged something."""
    until(lambda: set(run.get_metrics_by_rank()) >= set(ranks), seconds=240, what="all ranks at work")


def waiting(run):
    return run.get_details().get("waitingFor", "")


def details_of(run):
    details = ended(run)
    return details, f"{details.get('error')} {details.get('attempts')}\n{log(run)}"


class TestKinds:
    def test_gloo_meets_by_name(self, send, kubernetes_namespace):
        script = (
            HEAD
            + """
rank, address = int(os.environ['RANK']), (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
if rank == 0:
    server = socket.create_server(('', address[1]))
    print('met', server.accept()[0].recv(9).decode())
else:
    while True:
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(b'one')
"""
        )
        run = send(script, node_count=2, distributed_training=Gloo())
        details, why = details_of(run)
        assert details["status"] == "Completed", why
        assert log(run, 0) == "met one\n"

    def test_mpi(self, send):
        """mpirun in one pod starts ranks in the other, without any sshd."""
        script = (
            HEAD
            + """
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, world.size, world.allreduce(world.rank), os.environ['LOCAL_RANK'])
run.log('sum', world.allreduce(world.rank))
"""
        )
        run = send(script, node_count=2, distributed_training=Mpi(2), pip_packages=["mpi4py"])
        details, why = details_of(run)
        assert details["status"] == "Completed", why
        assert [log(run, rank) for rank in range(4)] == [f"{rank} 4 6 {rank % 2}\n" for rank in range(4)]
        assert {rank: found["sum"] for rank, found in run.get_metrics_by_rank().items()} == dict.fromkeys(range(4), 6)

    def test_parameter_servers_end_when_the_workers_have(self, send):
        script = (
            "import json, os, time\nconfig = json.loads(os.environ['TF_CONFIG'])\nprint(config['task'])\n"
            "time.sleep(3600 if config['task']['type'] == 'ps' else 0)\n"
        )
        servers = ParameterServer(worker_count=2, parameter_server_count=1)
        details, why = details_of(send(script, node_count=2, distributed_training=servers))
        assert details["status"] == "Completed", why

    def test_gpus(self, send, target, kubernetes_cluster, kubernetes_namespace):
        """Two pods of two GPUs on two nodes of two; a third pod waits for one of them, in words."""
        kubernetes_cluster.offer_gpus(2)
        target("gpus", gpus_per_node=2)
        first = send(WAITS, compute_target="gpus", node_count=2, distributed_training=Gloo())
        at_work(first, (0, 1))
        for pod in kubernetes_namespace.pods_of(first):
            assert pod["spec"]["containers"][0]["resources"]["limits"][GPU] == "2"
        second = send("print('at last')", compute_target="gpus")
        until(lambda: GPU in waiting(second), what="the reason")
        first.cancel()
        details, why = details_of(second)
        assert details["status"] == "Completed", why
        assert ended(first)["status"] == "Canceled"

    def test_a_sweep(self, ws, tmp_path):
        script = "import sys\nfrom trainmaster import Run\nRun.get_context().log('score', float(sys.argv[2]))\n"
        (tmp_path / "train.py").write_text(script)
        estimator = Estimator(str(tmp_path), entry_script="train.py", compute_target="cluster", user_managed=True)
        config = HyperDriveConfig(
            estimator=estimator,
            hyperparameter_sampling=GridParameterSampling({"--value": choice(1, 2, 3)}),
            primary_metric_name="score",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=3,
            max_concurrent_runs=3,
        )
        run = Experiment(ws, "sweep").submit(config)
        assert ended(run)["status"] == "Completed"
        assert run.get_best_run_by_primary_metric().get_metrics() == {"score": 3.0}


class TestWaiting:
    def test_for_room(self, send, target, kubernetes_namespace):
        """A run that no node has room for says what is missing, and can be cancelled."""
        run = send("print(1)", compute_target=target("huge", cpus_per_node=64))
        words = until(lambda: "CPU" in waiting(run) and waiting(run), what="the reason")
        assert "2" in words
        assert run.get_status() == "Queued"
        run.cancel()
        assert ended(run)["status"] == "Canceled"
        until(lambda: not kubernetes_namespace.pods_of(run), what="the end of its pods")

    def test_for_an_image(self, send, target):
        run = send("print(1)", compute_target=target("imageless", image="minik8s.local/nothing:1"))
        until(lambda: "minik8s.local/nothing:1" in waiting(run), what="the reason")
        run.cancel()
        assert ended(run)["status"] == "Canceled"

    def test_half_a_gang_gives_its_room_back(self, send, target, kubernetes_cluster, kubernetes_namespace):
        """Two pods, room for one: after a time both are removed, and a run that fits goes first."""
        kubernetes_cluster.offer_gpus(1)
        target("whole", gpus_per_node=1, gang_seconds=5)
        holder = send(WAITS, compute_target="whole")
        at_work(holder)
        pair = send("print('both')", compute_target="whole", node_count=2, distributed_training=Gloo())
        until(lambda: len(kubernetes_namespace.pods_of(pair)) == 2, what="both pods")
        first = {pod["metadata"]["uid"] for pod in kubernetes_namespace.pods_of(pair)}
        until(
            lambda: not first & {pod["metadata"]["uid"] for pod in kubernetes_namespace.pods_of(pair)},
            what="that both pods are given back",
        )
        holder.cancel()
        details, why = details_of(pair)
        assert details["status"] == "Completed", why
        assert len(details.get("attempts") or [1]) == 1
        ended(holder)


class TestEnds:
    def test_cancel_gives_time_to_save(self, send, kubernetes_namespace):
        run = send(
            HEAD + "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
            "run.log('begun', 1)\ntime.sleep(3600)\n"
        )
        at_work(run)
        run.cancel()
        assert ended(run)["status"] == "Canceled"
        assert log(run) == "saved\n"
        until(lambda: not kubernetes_namespace.pods_of(run), what="the end of its pods")

    def test_out_of_memory(self, send, target):
        script = HEAD + "held = []\nwhile True:\n    held.append(bytearray(2**20))\n"
        run = send(script, compute_target=target("small", memory_per_node="96Mi"))
        details, why = details_of(run)
        assert details["status"] == "Failed", why
        assert "memory" in details["error"]["message"], why

    def test_a_bad_image_name(self, send, target):
        details, why = details_of(
            send("print(1)", compute_target=target("python-less", image="minik8s.local/busybox:1"))
        )
        assert details["status"] == "Failed", why
        assert "python3" in details["error"]["message"]

    def test_refused_by_the_server(self, send, target):
        """A pod that the API server does not accept fails the run with the server's words."""
        run = send("print(1)", compute_target=target("nobody", priority_class="no-such-class"))
        details, why = details_of(run)
        assert details["status"] == "Failed", why
        assert "no-such-class" in details["error"]["message"], why

    def test_hangs(self, send):
        # Longer than a busy machine takes to start a script.
        run = send(
            "import time\ndef wait():\n    time.sleep(3600)\nprint('here', flush=True)\nwait()\n", hang_seconds=15
        )
        details, why = details_of(run)
        assert details["status"] == "Failed", why
        assert details["error"]["code"] == "HangDetected", why
        assert "line 3 in wait" in details["error"]["message"], why

    def test_evicted(self, send, kubernetes_namespace):
        """As when a machine is drained: it runs again."""
        run = send(TWICE)
        at_work(run)
        (pod,) = kubernetes_namespace.pods_of(run)
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{kubernetes_namespace.name}/pods/{name}/eviction"
        body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": name}}
        kubernetes_namespace.kubectl("create", "--raw", path, "--filename", "-", text=json.dumps(body))
        runs_again(run)

    def test_deleted_by_somebody(self, send, kubernetes_namespace):
        run = send(TWICE, node_count=2, distributed_training=Gloo())
        at_work(run, (0, 1))
        name = kubernetes_namespace.pods_of(run)[1]["metadata"]["name"]
        kubernetes_namespace.kubectl("delete", "pod", name, "--force", "--grace-period=0")
        runs_again(run)

    def test_preempted(self, send, target, kubernetes_cluster, kubernetes_namespace):
        kubernetes_cluster.offer_gpus(1)
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        kubernetes_namespace.kubectl(
            "apply", "--filename", "-", text=json.dumps({**urgent, "metadata": {"name": "urgent"}})
        )
        run = send(TWICE, compute_target=target("one", gpus_per_node=1), node_count=2, distributed_training=Gloo())
        at_work(run, (0, 1))
        container = {"name": "main", "image": IMAGE, "command": ["true"], "resources": {"limits": {GPU: "1"}}}
        spec = {"priorityClassName": "urgent", "restartPolicy": "Never", "containers": [container]}
        kubernetes_namespace.kubectl("apply", "--filename", "-", text=json.dumps({**POD, "spec": spec}))
        attempts = runs_again(run)
        assert attempts[0]["error"]["code"] == "Preempted"
        kubernetes_namespace.kubectl("delete", "pod", "urgent")

    def test_kubelet_away(self, send, kubernetes_cluster, kubernetes_namespace):
        """A kubelet that starts again: the run goes on, and nothing is lost or comes twice."""
        run = send(COUNTS)
        at_work(run)
        node = kubernetes_namespace.pods_of(run)[0]["spec"]["nodeName"]
        kubernetes_cluster.stop_kubelet(node)
        kubernetes_cluster.start_kubelet(node)
        details, why = details_of(run)
        assert details["status"] == "Completed", why
        assert log(run) == "".join(f"line {number}\n" for number in range(60))
        assert run.get_metrics()["number"] == list(range(60))
        kubernetes_cluster.wait_for_node(node)

    # A node is given up after 40 s.
    if "KUBERNETES_IN_FULL" in os.environ:

        def test_node_lost(self, send, kubernetes_cluster, kubernetes_namespace):
            """The power of a machine fails: the run goes on elsewhere."""
            run = send(TWICE)
            at_work(run)
            node = kubernetes_namespace.pods_of(run)[0]["spec"]["nodeName"]
            kubernetes_cluster.kill_node(node)
            try:
                runs_again(run)
            finally:
                kubernetes_cluster.start_node(node)


def runs_again(run):
    """The attempts of a run that lost its pods and ran again."""
    details, why = details_of(run)
    assert details["status"] == "Completed", why
    assert [each["status"] for each in details["attempts"]] == ["Failed", "Completed"], why
    metrics = run.get_metrics_by_rank()
    assert all(found["attempt"] == [1, 2] for found in metrics.values()), metrics
    return details["attempts"]


def test_every_right_of_the_role_is_used(send, ws, target, kubernetes_namespace):
    """By a run from its start to its end, and by one that another dispatcher takes over."""
    waits = send("print(1)", compute_target=target("huge", cpus_per_node=64))
    until(lambda: "CPU" in waiting(waits), what="the reason")
    os.kill(int(WorkspaceFolder(ws.path).lock.read_text()), signal.SIGKILL)
    assert ended(send("print(1)"))["status"] == "Completed"
    (role,) = kubernetes_namespace.objects("roles")
    rights = {(kind, verb) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
    # The first is asked for since Kubernetes 1.35, the second after a dispatcher died while it created a service.
    rare = {("pods/exec", "create"), ("services", "get")}
    until(lambda: rights - rare <= kubernetes_namespace.used_rights(), what="all rights")
