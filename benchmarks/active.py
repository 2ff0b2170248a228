"""A thousand runs that are active at once in one workspace: most of them wait for nodes.

python -m benchmarks.active [--json] [--runs 1000] [--nodes 8]

What counts is that nothing grows with the number of active runs: processor time of the dispatcher for a submit at the
beginning and at the end, for a second in which nothing happens, for a list, and for each run that ends.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.submit import make_source, stop
from trainmaster import ComputeTarget, Estimator, Experiment, LocalCompute, Workspace
from trainmaster.shared.folders import WorkspaceFolder

_HOLD = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.05)\n"
_GROUP = 50


def measure(runs: int = 1000, nodes: int = 8) -> dict[str, Any]:
    """Milliseconds of processor time of the dispatcher."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        source = make_source(base / "project", files=2)
        (source / "hold.py").write_text(_HOLD)
        (source / "end.py").write_text("")
        workspace = Workspace.create("many", path=base / "workspace", show_output=False)
        size = LocalCompute.configuration(nodes=nodes, cpus_per_node=1, gpus_per_node=0)
        ComputeTarget.create(workspace, "box", size)
        try:
            return _measure(workspace, source, base / "go", runs, nodes)
        finally:
            (base / "go").touch()
            for run in workspace.connection.call("status")["active"]:
                workspace.connection.call("runs.cancel", run_id=run["id"])
            stop(workspace.path)


def _measure(workspace: Workspace, source: Path, go: Path, count: int, nodes: int) -> dict[str, Any]:
    experiment = Experiment(workspace, "many")

    def submit(script: str, *arguments: str) -> Any:
        settings = {"compute_target": "box", "user_managed": True}
        parameters = dict.fromkeys(arguments, "")
        return experiment.submit(Estimator(str(source), entry_script=script, script_params=parameters, **settings))

    holders = [submit("hold.py", str(go)) for _ in range(nodes)]
    pid = int(WorkspaceFolder(workspace.path).lock.read_text())
    submits: list[float] = []
    began = time.perf_counter()
    waiting = []
    while len(waiting) < count - nodes:
        cpu = _read_cpu(pid)
        waiting += [submit("end.py") for _ in range(_GROUP)]
        submits.append((_read_cpu(pid) - cpu) / _GROUP)
    submitted_s = time.perf_counter() - began
    time.sleep(5)
    cpu = _read_cpu(pid)
    time.sleep(10)
    idle = (_read_cpu(pid) - cpu) / 10
    cpu = _read_cpu(pid)
    for _ in range(20):
        workspace.connection.call("runs.list", query={"limit": 100})
    listed = (_read_cpu(pid) - cpu) / 20
    cpu = _read_cpu(pid)
    for _ in range(20):
        waiting[-1].get_detailed_status()
    described = (_read_cpu(pid) - cpu) / 20
    cpu, began = _read_cpu(pid), time.perf_counter()
    go.touch()
    for run in (*holders, *waiting):
        run.wait_for_completion()
    return {
        "runs": len(holders) + len(waiting),
        "submit_all_s": submitted_s,
        "submit_first_ms": submits[0],
        "submit_last_ms": statistics.median(submits[-3:]),
        "idle_ms_per_s": idle,
        "list_100_ms": listed,
        "status_of_one_ms": described,
        "run_of_each_ms": (_read_cpu(pid) - cpu) / (len(holders) + len(waiting)),
        "run_all_s": time.perf_counter() - began,
        "completed": sum(run.get_status() == "Completed" for run in (*holders, *waiting)),
    }


def _read_cpu(pid: int) -> float:
    """Milliseconds of processor time of all threads of a process."""
    fields = [Path(task, "schedstat").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(each[0]) for each in fields) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=8)
    options = parser.parse_args()
    if options.runs <= options.nodes:
        parser.error("--runs must be more than --nodes, so that some runs wait")
    figures = measure(options.runs, options.nodes)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:24} {value:12.3f}" if isinstance(value, float) else f"{name:24} {value:12}")


if __name__ == "__main__":
    main()
