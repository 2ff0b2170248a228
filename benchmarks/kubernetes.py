"""What Trainmaster costs on Kubernetes, against doing the same with kubectl, on the same real cluster and in turns.

    python -m benchmarks.kubernetes [--json] [--runs 100] [--watched 1000]

From the call to the script's first line, against `kubectl apply` of a bare pod; many runs of one pod at once, against
as many bare Jobs; and the dispatcher's memory while a thousand pods of its runs wait for a scheduler. There is always
room, so that nobody waits for the cluster's scheduler longer than it takes to decide.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster.kubernetes import any_cluster
from tests.cluster.kubernetes_namespace import CLAIM, IMAGE, Namespace, create_target
from tests.conftest import end_workspace

from trainmaster import Estimator, Experiment, Run, Workspace
from trainmaster.shared.folders import WorkspaceFolder

ROUNDS = 15
NOBODY = "nobody"
"""A scheduler that does not run."""
PATIENCE = 1800.0
SCRIPT = "import sys, time\nopen(sys.argv[1], 'w').write(repr(time.time()))\n"


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.time() + PATIENCE
    while not (found := condition()):
        assert time.time() < deadline, f"{what} did not come"
        time.sleep(0.005)
    return found


def first_line(place: Path) -> float:
    """When the script began, as it says itself."""
    return float(wait_for(lambda: place.exists() and place.read_text(), "the script's first line"))


def pod_spec(namespace: Namespace, place: Path) -> dict[str, Any]:
    """A bare pod that runs the script."""
    volume = {"name": "shared", "persistentVolumeClaim": {"claimName": CLAIM}}
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python3", str(namespace.folder / "train.py"), str(place)],
        "volumeMounts": [{"name": "shared", "mountPath": str(namespace.folder)}],
    }
    return {"restartPolicy": "Never", "volumes": [volume], "containers": [container]}


def bare(namespace: Namespace, number: int) -> float:
    """Seconds from `kubectl apply` to the first line."""
    place = namespace.folder / f"bare{number}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"bare-{number}"},
        "spec": pod_spec(namespace, place),
    }
    begin = time.time()
    namespace.kubectl("apply", "--filename", "-", text=json.dumps(pod))
    took = first_line(place) - begin
    namespace.kubectl("delete", "pod", f"bare-{number}", "--wait=false")
    return took


def submit(experiment: Experiment, source: Path, place: Path, target: str) -> Run:
    settings = {"script_params": {str(place): ""}, "user_managed": True, "compute_target": target}
    return experiment.submit(Estimator(str(source), entry_script="train.py", **settings))


def ours(experiment: Experiment, source: Path, namespace: Namespace, target: str, number: int) -> float:
    """The same, through Trainmaster."""
    place = namespace.folder / f"ours-{target}{number}"
    begin = time.time()
    run = submit(experiment, source, place, target)
    took = first_line(place) - begin
    run.wait_for_completion()
    return took


def bare_crowd(namespace: Namespace, count: int) -> float:
    """Seconds until so many Jobs of one pod have completed."""
    jobs = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"job-{number}", "labels": {"crowd": "bare"}},
            "spec": {"template": {"spec": pod_spec(namespace, namespace.folder / f"job{number}")}},
        }
        for number in range(count)
    ]
    begin = time.time()
    namespace.kubectl("apply", "--filename", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    words = ["wait", "--for=condition=complete", "job", "--selector", "crowd=bare", f"--timeout={PATIENCE:.0f}s"]
    namespace.kubectl(*words)
    took = time.time() - begin
    namespace.kubectl("delete", "job", "--selector", "crowd=bare")
    return took


def our_crowd(experiment: Experiment, source: Path, namespace: Namespace, count: int) -> float:
    """The same, through Trainmaster."""
    begin = time.time()
    runs = [submit(experiment, source, namespace.folder / f"crowd{number}", "stream") for number in range(count)]
    for run in runs:
        run.wait_for_completion()
    return time.time() - begin


def watched(workspace: Workspace, source: Path, namespace: Namespace, count: int) -> dict[str, float]:
    """The dispatcher's memory and processor time while the pods of so many runs wait."""
    pid = int(WorkspaceFolder(workspace.path).lock.read_text())
    before = memory(pid)
    create_target(workspace, "nobody", namespace, scheduler=NOBODY)
    experiment = Experiment(workspace, "watched")
    runs = [submit(experiment, source, Path("/nowhere"), "nobody") for _ in range(count)]
    wait_for(lambda: len(namespace.objects("pods", "trainmaster.io/run")) >= count, "all pods")
    time.sleep(5)
    begin = processor_seconds(pid)
    time.sleep(10)
    idle = (processor_seconds(pid) - begin) / 10
    found = {"watched_pods": count, "memory_before_mb": before, "memory_mb": memory(pid), "idle_ms_per_s": idle * 1e3}
    begin_cancel = time.time()
    for run in runs:
        run.cancel()
    for run in runs:
        run.wait_for_completion(raise_on_error=False)
    return {**found, "cancel_all_s": time.time() - begin_cancel}


def memory(pid: int) -> float:
    """Megabytes that a process alone holds."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def processor_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def measure(count: int, pods: int) -> dict[str, float]:
    """All figures."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        any_cluster() as cluster,
        cluster.create_namespace("benchmark") as namespace,
    ):
        os.environ["TRAINMASTER_HOME"] = f"{temporary}/home"
        source = Path(temporary) / "source"
        source.mkdir()
        for place in (source, namespace.folder):
            (place / "train.py").write_text(SCRIPT)
        streamed = Workspace.create("streamed", path=Path(temporary) / "workspace", show_output=False)
        shared = Workspace.create("shared", path=namespace.folder / "workspace", show_output=False)
        try:
            return _measure(streamed, shared, source, namespace, count, pods)
        finally:
            for workspace in (streamed, shared):
                end_workspace(workspace.path)


def _measure(
    streamed: Workspace, shared: Workspace, source: Path, namespace: Namespace, count: int, pods: int
) -> dict[str, float]:
    volume = {"kind": "claim", "name": CLAIM, "path": str(namespace.folder)}
    create_target(streamed, "stream", namespace, volumes=[volume])
    create_target(shared, "storage", namespace, storage=namespace.folder)
    experiments = {"stream": Experiment(streamed, "bench"), "storage": Experiment(shared, "bench")}
    times: dict[str, list[float]] = {"bare": [], "stream": [], "storage": []}
    for target, experiment in experiments.items():
        ours(experiment, source, namespace, target, -1)
    for number in range(ROUNDS):
        times["bare"].append(bare(namespace, number))
        for target, experiment in experiments.items():
            times[target].append(ours(experiment, source, namespace, target, number))
    medians = {name: statistics.median(taken) * 1e3 for name, taken in times.items()}
    jobs_s = bare_crowd(namespace, count)
    runs_s = our_crowd(experiments["stream"], source, namespace, count)
    return {
        "kubectl_apply_ms": medians["bare"],
        "stream_ms": medians["stream"],
        "storage_ms": medians["storage"],
        "crowd": count,
        "jobs_per_second": count / jobs_s,
        "runs_per_second": count / runs_s,
        **watched(streamed, source, namespace, pods),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--runs", type=int, default=100, help="how many runs and Jobs at once (default: 100)")
    parser.add_argument("--watched", type=int, default=1000, help="how many pods wait at once (default: 1000)")
    options = parser.parse_args()
    figures = measure(options.runs, options.watched)
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:>28}  {round(figure, 2)}")


if __name__ == "__main__":
    main()
