"""SIGKILL for the dispatcher, the API server, the scheduler, kubelets and pods, while runs come and go on Kubernetes.

Nothing is lost, nothing comes twice, nothing stays behind. `CHAOS_SEED` repeats a storm's choices; `KUBERNETES_KILLS`
and `KUBERNETES_RUNS` say how long it is. `make test-kubernetes` has 200 kills over 100 runs.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.kubernetes import Cluster
from tests.cluster.kubernetes_namespace import CLAIM, Namespace, create_target
from tests.conftest import end_workspace
from trainmaster import Estimator, Experiment, Run, Workspace
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import TERMINAL

KILLS = int(os.environ.get("KUBERNETES_KILLS", "9"))
RUNS = int(os.environ.get("KUBERNETES_RUNS", "6"))
AT_ONCE = 6
# The proof is a folder that pods and this test see: it says what happened, whatever Trainmaster knows of it.
SCRIPT = """
import os, sys, time
from trainmaster import Run
run, attempt = Run.get_context(), os.environ["TRAINMASTER_ATTEMPT"]
proof = open(sys.argv[1], "a", buffering=1)
print("begun", attempt, file=proof)
for number in range(int(sys.argv[2])):
    print("line", number)
    run.log("value", int(attempt) * 1000 + number)
    print(attempt, number, file=proof)
    time.sleep(0.05)
os.makedirs("outputs", exist_ok=True)
open("outputs/result.txt", "w").write(attempt)
print("done", attempt, file=proof)
"""


class Storm:
    """Keeps runs coming, kills at random, and remembers what it did to whom."""

    def __init__(self, workspace: Workspace, namespace: Namespace, source: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.workspace, self.namespace, self.cluster = workspace, namespace, namespace.cluster
        self.source = source
        self.runs: list[Run] = []
        self.kills: collections.Counter[str] = collections.Counter()
        self.killed: set[str] = set()
        """The runs of whose containers one was killed: they may fail."""
        self.cancelled: set[str] = set()
        self._victims: dict[str, Callable[[], bool]] = {
            "dispatcher": self._kill_dispatcher,
            "kube-apiserver": lambda: self._kill_component("kube-apiserver"),
            "kube-scheduler": lambda: self._kill_component("kube-scheduler"),
            "kube-controller-manager": lambda: self._kill_component("kube-controller-manager"),
            "kubelet": self._kill_kubelet,
            "container": self._kill_container,
            "pod": self._delete_pod,
        }

    def rage(self, kills: int, runs: int) -> None:
        """Kill something at random moments until there were so many kills, and so many runs."""
        names = list(self._victims)
        while self.kills.total() < kills or len(self.runs) < runs:
            self._keep_busy(runs)
            time.sleep(self.random.random())
            # At first each of them once.
            name = names[self.kills.total()] if self.kills.total() < len(names) else self.random.choice(names)
            if self.kills.total() < kills and self._victims[name]():
                self.kills[name] += 1

    def proof(self, run: Run) -> list[str]:
        """What the script of a run says that it did."""
        path = self.namespace.folder / run.tags["proof"]
        return path.read_text().splitlines() if path.exists() else []

    def _keep_busy(self, runs: int) -> None:
        active = [run for run in self.runs if run.get_status() not in TERMINAL]
        if active and self.random.random() < 0.05:
            run = self.random.choice(active)
            self.cancelled.add(run.id)
            run.cancel()
        while (len(active) < AT_ONCE and len(self.runs) < runs) or (not active and self.kills.total() < KILLS):
            active.append(self._submit())

    def _submit(self) -> Run:
        name = f"proof{len(self.runs)}"
        estimator = Estimator(
            str(self.source),
            entry_script="train.py",
            script_params={str(self.namespace.folder / name): "", str(self.random.randint(1, 100)): ""},
            compute_target="cluster",
            user_managed=True,
        )
        run = Experiment(self.workspace, "storm").submit(estimator, tags={"proof": name})
        self.runs.append(run)
        return run

    def _kill_dispatcher(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            pid = int(WorkspaceFolder(self.workspace.path).lock.read_text())
            if b"trainmaster.dispatcher" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def _kill_component(self, name: str) -> bool:
        self.cluster.kill(name)
        time.sleep(self.random.random() * 3)
        self.cluster.start(name)
        return True

    def _kill_kubelet(self) -> bool:
        node = self.random.choice(self.cluster.nodes)
        self.cluster.stop_kubelet(node)
        # Not so long that the node is given up.
        time.sleep(self.random.random() * 5)
        self.cluster.start_kubelet(node)
        return True

    def _kill_container(self) -> bool:
        pod = self._choose_pod()
        if pod is None:
            return False
        self.killed.add(pod["metadata"]["annotations"]["trainmaster.io/run-id"])
        with contextlib.suppress(AssertionError):
            return self.cluster.kill_container(self.namespace.name, pod["metadata"]["name"])
        return False

    def _delete_pod(self) -> bool:
        pod = self._choose_pod()
        if pod is None:
            return False
        words = self.random.choice([["--force", "--grace-period=0"], ["--wait=false"]])
        with contextlib.suppress(AssertionError):
            self.namespace.kubectl("delete", "pod", pod["metadata"]["name"], *words)
            return True
        return False

    def _choose_pod(self) -> dict | None:
        pods = [pod for pod in self.namespace.objects("pods") if pod["status"]["phase"] in ("Pending", "Running")]
        return self.random.choice(pods) if pods else None


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[Storm]:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"\nCHAOS_SEED={seed}")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(SCRIPT)
    with Cluster() as cluster, cluster.create_namespace("storm") as namespace:
        workspace = Workspace.create("storm", path=tmp_path / "workspace", show_output=False)
        volume = {"kind": "claim", "name": CLAIM, "path": str(namespace.folder)}
        create_target(workspace, "cluster", namespace, volumes=[volume])
        try:
            yield Storm(workspace, namespace, tmp_path / "source", seed)
        finally:
            end_workspace(workspace.path)


@pytest.mark.timeout(7200)
def test_every_run_ends_rightly_whatever_is_killed(storm: Storm) -> None:
    begin = time.monotonic()
    storm.rage(KILLS, RUNS)
    for run in storm.runs:
        run.wait_for_completion(raise_on_error=False)
    ends = collections.Counter(check_run(storm, run) for run in storm.runs)
    print(f"{storm.kills.total()} kills, {len(storm.runs)} runs, {time.monotonic() - begin:.0f} s")
    print(f"  {dict(storm.kills)}\n  {dict(ends)}")
    assert ends["Completed"] >= len(storm.runs) // 3
    storm.namespace.wait_until_empty()


def check_run(storm: Storm, run: Run) -> str:
    details = run.get_details()
    status, proof = details["status"], storm.proof(run)
    context = f"{run.id}: {status} {details.get('error')} {details.get('attempts')} {proof[-3:]}"
    assert status in TERMINAL, context
    begun = [line for line in proof if line.startswith("begun")]
    assert len(begun) == len(set(begun)), f"an attempt ran twice: {context}"
    assert storm.cluster.processes(run.id) == [], f"a process is left: {context}"
    check_metrics(run, proof, context)
    if status == "Completed":
        attempt = begun[-1].split()[1]
        assert proof[-1] == f"done {attempt}", context
        assert "outputs/result.txt" in run.get_file_names(), context
        lines = [line for line in proof if line.split()[0] == attempt]
        printed = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
        assert printed == "".join(f"line {number}\n" for number in range(len(lines))), context
    elif status == "Canceled":
        assert run.id in storm.cancelled, context
    else:
        assert run.id in storm.killed, f"it failed although nobody touched its containers: {context}"
    return str(status)


def check_metrics(run: Run, proof: list[str], context: str) -> None:
    """No value comes twice, and of the last attempt none is missing."""
    logged = run.get_metrics().get("value", [])
    logged = logged if isinstance(logged, list) else [logged]
    assert len(logged) == len(set(logged)), f"a value came twice: {context}"
    proven = [int(attempt) * 1000 + int(number) for attempt, number in map(str.split, proof) if attempt.isdigit()]
    if run.get_status() == "Completed":
        last = max(proven, default=0) // 1000
        assert [each for each in logged if each // 1000 == last] == [each for each in proven if each // 1000 == last]
    assert set(logged) <= set(proven) | {max(proven, default=-1) + 1}, f"a value that nobody logged: {context}"
