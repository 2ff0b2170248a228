"""Trials per second of a sweep whose script only reports three values, two at a time, against a bare pool of two.

Also: what one trial costs the dispatcher in a sweep of 100 and in one of 1,000, what a warm Python gives (with
`--torch` also for trials that import torch, in an environment that is built for them), and with `--peers` what others
take.

    python -m benchmarks.sweeps [--trials 100] [--many 1000] [--rounds 3] [--torch] [--peers] [--json]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
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
from trainmaster.shared.folders import WorkspaceFolder

_SCRIPT = """import sys
from azureml.core import Run
run = Run.get_context()
for value in (1, 2, 3):
    run.log("score", value * float(sys.argv[2]))
"""
# For the warm Python: the heaviest of these that is installed.
_HEAVY = ("numpy", "sqlalchemy")
_TORCH = "torch==2.13.0"
_AT_ONCE = 2
# Of other programs, measured once on the machine this was written on (2 cores), with the same script.
OTHERS = {
    "Optuna, a process per trial, journal": 66.0,
    "Optuna, a process per trial, SQLite": 24.0,
    "Ray Tune": 0.85,
    "Ray Tune, reused actors": 13.0,
    "NNI": 0.64,
}
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "trainmaster-benchmarks", "sweeps")
# Each is a program that gets: how many trials, how many at once, and the command of a trial.
_OPTUNA = """import subprocess, sys, tempfile, time
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
trials, at_once, *command = sys.argv[1:]
optuna.logging.set_verbosity(optuna.logging.WARNING)
def objective(trial):
    subprocess.run([*command, str(trial.suggest_float("x", 0, 1))], check=True, capture_output=True)
    return 1.0
with tempfile.TemporaryDirectory() as folder:
    storage = JournalStorage(JournalFileBackend(folder + "/journal"))
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler())
    begun = time.monotonic()
    study.optimize(objective, n_trials=int(trials), n_jobs=int(at_once))
    print(int(trials) / (time.monotonic() - begun))
"""
_RAY = """import os, subprocess, sys, tempfile, time
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
import ray
from ray import tune
trials, at_once, *command = sys.argv[1:]
def trainable(config):
    subprocess.run([*command, str(config["x"])], check=True, capture_output=True)
    tune.report({"score": 1.0})
ray.init(num_cpus=int(at_once), include_dashboard=False, log_to_driver=False)
with tempfile.TemporaryDirectory() as folder:
    begun = time.monotonic()
    tune.Tuner(
        trainable,
        param_space={"x": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(num_samples=int(trials), max_concurrent_trials=int(at_once)),
        run_config=tune.RunConfig(storage_path=folder, verbose=0),
    ).fit()
    print(int(trials) / (time.monotonic() - begun))
"""
# Name, packages, program, and at most how many trials: some take long.
_PEERS = (
    ("Optuna, a process per trial, journal", "optuna", _OPTUNA, 100),
    ("Ray Tune", "ray[tune]", _RAY, 20),
)


def measure(
    trials: int = 100, many: int = 1000, rounds: int = 3, torch: bool = False, peers: bool = False
) -> dict[str, Any]:
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
        if peers:
            figures["peers"] = {name: peer(source, kit, *each, trials) for name, *each in _PEERS}
        some = max(10, trials // 4)
        figures["warm"] = [warmth(workspace, source, some, next(filter(importlib.util.find_spec, _HEAVY)))]
        if torch:
            figures["warm"].append(warmth(workspace, source, some, "torch", [_TORCH]))
        stop(base / "ws")
    return {**figures, "others": OTHERS}


def warmth(
    workspace: Workspace, source: Path, trials: int, module: str, packages: Sequence[str] = ()
) -> dict[str, Any]:
    """Trials per second of a script that imports something heavy first: as always, and in a warm Python.

    Where that is not installed here, `packages` are those of the environment that has it.
    """
    (source / "train.py").write_text(f"import {module}\n{_SCRIPT}")
    warm = {"TRAINMASTER_WARM_IMPORTS": module}
    # These build the environment and make the Python warm.
    swept(workspace, source, 4, warm, packages)
    swept(workspace, source, 10, warm, packages)
    cold_rate, _ = swept(workspace, source, trials, {}, packages)
    warm_rate, _ = swept(workspace, source, trials, warm, packages)
    return {"imported": module, "cold_per_second": cold_rate, "warm_per_second": warm_rate}


def peer(source: Path, kit: Path, package: str, program: str, most: int, trials: int) -> float:
    """Trials per second of another program that starts the script for each of its trials."""
    command = [sys.executable, str(source / "train.py"), "--x"]
    variables = {**os.environ, "PYTHONPATH": str(kit)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    python = str(environment(package))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program)
        file.flush()
        arguments = [str(min(trials, most)), str(_AT_ONCE), *command]
        done = subprocess.run(
            [python, file.name, *arguments], env=variables, check=True, capture_output=True, text=True
        )
    return float(done.stdout.split()[-1])


def environment(package: str) -> Path:
    """The Python of an environment with this package; built once."""
    place = CACHE / package.partition("[")[0]
    wanted = json.dumps([sys.version_info[:2], package])
    mark = place / "packages.json"
    if not (mark.exists() and mark.read_text() == wanted):
        shutil.rmtree(place, ignore_errors=True)
        uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(place)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "-p", str(place / "bin" / "python"), package], check=True)
        mark.write_text(wanted)
    return place / "bin" / "python"


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
    workspace: Workspace,
    source: Path,
    trials: int,
    variables: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
) -> tuple[float, float]:
    """Trials per second of a sweep, from submit to its end, and the dispatcher's milliseconds of CPU per trial."""
    estimator = Estimator(
        str(source),
        entry_script="train.py",
        compute_target="box",
        user_managed=not packages,
        pip_packages=list(packages) or None,
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
    parser.add_argument("--torch", action="store_true", help="also trials that import torch, in a built environment")
    parser.add_argument("--peers", action="store_true", help="other programs too; their environments take minutes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.trials, options.many, options.rounds, options.torch, options.peers)
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
    for warm in found["warm"]:
        print(f"  trials that import {warm['imported']:<6} {warm['cold_per_second']:7.1f}")
        print(f"    in a warm Python        {warm['warm_per_second']:7.1f}")
    for name, rate in found.get("peers", {}).items():
        print(f"  {name + ' (now)':<54} {rate:7.2f}")
    for name, rate in found["others"].items():
        print(f"  {name + ' (measured once)':<54} {rate:7.2f}")


if __name__ == "__main__":
    main()
