"""What environments cost: the builder against bare uv and pip (warm caches), and a run whose environment is there.

python -m benchmarks.environments [--rounds 5] [--pip-rounds 1] [--without-torch] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trainmaster.dispatcher import environments
from trainmaster.environments import build as builder
from trainmaster.environments.tools import Tools
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec

DATA = EnvironmentSpec(pip_packages=("numpy", "pandas", "scikit-learn"))
# A CPU build, which pip's configured sources must have: plain torch would be gigabytes of CUDA.
TORCH = EnvironmentSpec(pip_packages=("torch==2.13.0",), accelerator="cpu")


def measure(rounds: int = 5, pip_rounds: int = 1, torch: bool = True) -> dict[str, float]:
    """Medians, the ways taken in turns so that a busy machine is busy for all."""
    found: dict[str, float] = {"rounds": rounds}
    with tempfile.TemporaryDirectory(prefix="environments-") as name:
        folder = Path(name)
        for title, spec in [("data", DATA), *([("torch", TORCH)] if torch else [])]:
            found.update({f"{title}_{key}": value for key, value in _built(spec, folder, rounds, pip_rounds).items()})
            found.update({f"{title}_{key}": value for key, value in _ready(spec, folder / f"ready-{title}").items()})
    return found


def _built(spec: EnvironmentSpec, folder: Path, rounds: int, pip_rounds: int) -> dict[str, float]:
    tools = Tools(dict(os.environ))
    bare, ours, ratios, pip = [], [], [], []
    ways = {
        "bare": lambda: _with_uv(spec, folder / "bare", tools),
        "ours": lambda: _with_builder(spec, folder / "ours"),
    }
    for number in range(rounds + 1):
        # Each goes first in turn: who comes second meets a file system that is busy with the first one's files.
        taken = {name: _timed(ways[name]) for name in sorted(ways, reverse=number % 2 == 0)}
        # The first round fills the caches.
        if number:
            bare.append(taken["bare"])
            ours.append(taken["ours"])
            ratios.append(taken["ours"] / taken["bare"])
        _remove(folder / "bare", folder / "ours")
    for _ in range(pip_rounds):
        pip.append(_timed(lambda: _with_pip(spec, folder / "pip")))
        _remove(folder / "pip")
    found = {
        "uv_s": _median(bare),
        "trainmaster_s": _median(ours),
        "trainmaster_to_uv": _median(ratios),
    }
    return {**found, "pip_s": _median(pip)} if pip else found


def _with_uv(spec: EnvironmentSpec, folder: Path, tools: Tools) -> None:
    python = os.path.realpath(sys.executable)
    _run(tools.uv_command(["venv", "--quiet", "--no-project", "--python", python, str(folder)]), tools.uv_environ)
    options = ["--quiet", "--python", f"{folder}/bin/python", *tools.source_options]
    _run(tools.uv_command(["pip", "install", *options, *spec.pip_packages]), tools.uv_environ)


def _with_builder(spec: EnvironmentSpec, folder: Path) -> None:
    """As the dispatcher does it: a process, from its start to its end."""
    order = builder.order(folder, spec, os.environ)
    _run([sys.executable, "-P", "-m", "trainmaster.environments"], dict(os.environ), order)


def _with_pip(spec: EnvironmentSpec, folder: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)], dict(os.environ))
    _run([f"{folder}/bin/python", "-m", "pip", "install", "--quiet", *spec.pip_packages], dict(os.environ))


def _ready(spec: EnvironmentSpec, folder: Path, rounds: int = 50) -> dict[str, float]:
    """What a run spends in an environment that is there: looked at, noted, its lock kept."""
    workspace = WorkspaceFolder(folder)
    with open(os.devnull, "w") as nowhere:
        shown, sys.stdout = sys.stdout, nowhere
        try:
            builder.build(workspace.environments, spec)
        finally:
            sys.stdout = shown

    async def once(number: int) -> float:
        begun = time.perf_counter()
        found = await environments.find(spec, workspace, os.environ["PATH"], "")
        if found is None or not environments.note_use(RunFolder(workspace.runs / str(number)), found):
            raise SystemExit("the environment that was built is not there")
        return (time.perf_counter() - begun) * 1000

    async def all_of_them() -> list[float]:
        return [await once(number) for number in range(rounds)]

    taken = asyncio.run(all_of_them())
    return {"ready_ms": _median(taken), "ready_worst_ms": round(max(taken), 2)}


def _run(command: list[str], variables: dict[str, str], given: bytes = b"") -> None:
    done = subprocess.run(command, env=variables, input=given, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[:4]} ended with {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")


def _timed(work: Callable[[], None]) -> float:
    # What an earlier one wrote and removed is not to be paid for here.
    os.sync()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pip-rounds", type=int, default=1, help="pip is slow: 0 leaves it out")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.rounds, options.pip_rounds, not options.without_torch)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
