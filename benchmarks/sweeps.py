"""Trials per second of a sweep whose script only reports three values, two at a time, against a bare pool of two.

Also: what one trial costs the dispatcher in a sweep of 100 and in one of 1,000.

python benchmarks/sweeps.py [--trials 100] [--many 1000] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.submit import stop
from trainmaster import (
    ComputeTarget,
    Estimator,
    Experiment,
    HyperDriveConfig,
    LocalCompute,
    PrimaryMetricGoal,
    RandomParameterSampling,
    Workspace,
    choice,
    uniform,
)
from trainmaster.environments.kit import ensure_kit
from trainmaster.folders import WorkspaceFolder

_SCRIPT = """import sys
from azureml.core import Run
run = Run.get_context()
for value in (1, 2, 3):
    run.log("score", value * float(sys.argv[2]))
"""
# For the warm Python: the heaviest of these that is installed.
_HEAVY = ("torch", "numpy", "sqlalchemy")
_AT_ONCE = 2
# Of other programs, measured once on the machine this was written on (2 cores), with the same script.
OTHERS = {
    "Optuna, a process per trial, journal": 66.0,
    "Optuna, a process per trial, SQLite": 24.0,
    "Ray Tune": 0.85,
    "Ray Tune, reused actors": 13.0,
    "NNI": 0.64,
}


def measure(trials: int = 100, many: int = 1000, rounds: int = 3) -> dict[str, Any]:
    """Trials per second, the two ways taken in turns so that a busy machine is busy for both; and CPU per trial."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        source = base / "project"
        source.mkdir()
        (source / "train.py").write_text(_SCRIPT)
        workspace = Workspace.create("measured", path=base / "ws", show_output=False)
        ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=_AT_ONCE))
        kit = ensure_kit(workspace.path)
        found: dict[str, list[float]] = {"bare": [], "sweep": [], "cpu": []}
        # The first sweep compiles and warms what all others find warm, and so does the first pool.
        bare(source, kit, base, 10)
        swept(workspace, source, 10)
        for _ in range(rounds):
            found["bare"].append(bare(source, kit, base, trials))
            rate, cpu = swept(workspace, source, trials)
            found["sweep"].append(rate)
            found["cpu"].append(cpu)
        figures: dict[str, Any] = {
            "trials": trials,
            "bare_per_second": statistics.median(found["bare"]),
            "sweep_per_second": statistics.median(found["sweep"]),
            "ratio": statistics.median(
                ours / theirs for ours, theirs in zip(found["sweep"], found["bare"], strict=True)
            ),
            "dispatcher_cpu_ms_per_trial": statistics.median(found["cpu"]),
        }
        if many:
            rate, cpu = swept(workspace, source, many)
            figures.update(many=many, many_per_second=rate, many_dispatcher_cpu_ms_per_trial=cpu)
        figures.update(warmth(workspace, source, max(10, trials // 4)))
        stop(base / "ws")
    return {**figures, "others": OTHERS}


def warmth(workspace: Workspace, source: Path, trials: int) -> dict[str, Any]:
    """Trials per second of a script that imports something heavy first: as always, and in a warm Python."""
    module = next(name for name in _HEAVY if importlib.util.find_spec(name))
    (source / "train.py").write_text(f"import {module}\n{_SCRIPT}")
    warm = {"TRAINMASTER_WARM_IMPORTS": module}
    # This one makes it warm.
    swept(workspace, source, 10, warm)
    cold_rate, _ = swept(workspace, source, trials)
    warm_rate, _ = swept(workspace, source, trials, warm)
    return {"imported": module, "cold_per_second": cold_rate, "warm_per_second": warm_rate}


def bare(source: Path, kit: Path, base: Path, trials: int) -> float:
    """Trials per second of a pool of two that starts the script again and again."""
    variables = {**os.environ, "PYTHONPATH": str(kit)}
    # As in a job: what was compiled is kept.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)

    def once(number: int) -> None:
        with open(base / "bare.log", "ab") as log:
            command = [sys.executable, "train.py", "--x", str(number / trials)]
            subprocess.run(command, cwd=source, env=variables, stdout=log, stderr=log, check=True)

    begun = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(once, range(trials)))
    return trials / (time.monotonic() - begun)


def swept(
    workspace: Workspace, source: Path, trials: int, variables: Mapping[str, str] | None = None
) -> tuple[float, float]:
    """Trials per second of a sweep, from submit to its end, and the dispatcher's milliseconds of CPU per trial."""
    estimator = Estimator(
        str(source),
        entry_script="train.py",
        compute_target="box",
        user_managed=True,
        environment_variables=dict(variables or {}),
    )
    config = HyperDriveConfig(
        RandomParameterSampling({"--x": uniform(0, 1), "--layers": choice(1, 2, 3)}),
        "score",
        PrimaryMetricGoal.MAXIMIZE,
        max_total_runs=trials,
        max_concurrent_runs=_AT_ONCE,
        estimator=estimator,
    )
    pid = int(WorkspaceFolder(workspace.path).lock.read_text())
    cpu, begun = _cpu_seconds(pid), time.monotonic()
    run = Experiment(workspace, "measured").submit(config)
    details = run.wait_for_completion(raise_on_error=False)
    took = time.monotonic() - begun
    if details["status"] != "Completed":
        raise SystemExit(f"the measured sweep is {details['status']}: {details.get('error')}")
    return trials / took, (_cpu_seconds(pid) - cpu) * 1000 / trials


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--many", type=int, default=1000, help="trials of the large sweep; 0 for none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.trials, options.many, options.rounds)
    if options.json:
        print(json.dumps(found))
        return
    print(f"trials per second, {found['trials']} trials, {_AT_ONCE} at a time")
    print(f"  a bare pool of {_AT_ONCE}          {found['bare_per_second']:7.1f}")
    print(f"  a sweep                   {found['sweep_per_second']:7.1f}   {found['ratio']:.0%} of the bare pool")
    print(f"  CPU of the dispatcher     {found['dispatcher_cpu_ms_per_trial']:7.1f} ms per trial")
    if "many" in found:
        many = f"a sweep of {found['many']}"
        print(f"  {many:<25} {found['many_per_second']:7.1f}")
        print(f"  CPU of the dispatcher     {found['many_dispatcher_cpu_ms_per_trial']:7.1f} ms per trial")
    print(f"  trials that import {found['imported']:<14} {found['cold_per_second']:7.1f}")
    print(f"    in a warm Python        {found['warm_per_second']:7.1f}")
    for name, rate in found["others"].items():
        print(f"  {name + ' (measured once)':<54} {rate:7.2f}")


if __name__ == "__main__":
    main()
