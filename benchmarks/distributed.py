"""What several processes cost: two ranks through Trainmaster against bare mpirun, bare Pythons and torchrun.

python -m benchmarks.distributed [--rounds 15] [--training-rounds 5] [--without-training] [--json]

`first_line` is from `submit()` (or the start of the bare command) to the last rank's first line, `end` to Completed (or
the end of the command). The training loops measure their own steps, while both ways take turns (`steps.py`): the
median of each process's steps, and the ratio's of the rounds. All ways are taken in turns, so that a busy machine is
busy for all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import PIPE
from typing import Any

from benchmarks import steps
from benchmarks.submit import stop
from trainmaster import ComputeTarget, Estimator, Experiment, Gloo, LocalCompute, Mpi, PyTorch, Run, Workspace

# A CPU build, which pip's configured sources must have: plain torch would be gigabytes of CUDA.
TORCH = "torch==2.13.0"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
ALLOWED_MS = 150
# One write each: under mpirun and torchrun both ranks print to the same pipe.
FIRST_LINE = "import os, time\nos.write(1, b'%d\\n' % time.monotonic_ns())\n"

SCRIPTS = {"first_line.py": FIRST_LINE, "gloo_loop.py": steps.GLOO_LOOP, "horovod_loop.py": steps.HOROVOD_LOOP}

Seconds = tuple[float, float]
"""To the last rank's first line, and to the end."""


class Bench:
    """A workspace, and the bare commands beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "source"
        self.source.mkdir()
        for name, text in SCRIPTS.items():
            (self.source / name).write_text(text)
        self.workspace = Workspace.create("bench", path=folder / "workspace", show_output=False)
        ComputeTarget.create(self.workspace, "box", LocalCompute.configuration(nodes=2))
        self.experiment = Experiment(self.workspace, "bench")

    def submit(self, kind: type[Any], script: str, **settings: Any) -> tuple[Run, float, float]:
        """A run that has ended, when it was submitted and when it had ended."""
        begun = time.monotonic()
        run = self.begin(kind, script, **settings)
        run.wait_for_completion()
        return run, begun, time.monotonic()

    def begin(self, kind: type[Any], script: str, **settings: Any) -> Run:
        estimator = kind(str(self.source), entry_script=script, compute_target="box", **settings)
        run: Run = self.experiment.submit(estimator)
        return run

    def through_us(self, kind: type[Any], **settings: Any) -> Seconds:
        run, begun, ended = self.submit(kind, "first_line.py", **settings)
        return _last_first_line(self.outputs(run)) - begun, ended - begun

    def outputs(self, run: Run) -> list[str]:
        """What each of the two ranks printed."""
        run.wait_for_completion()
        logs = self.workspace.path / "runs" / run.id / "files" / "azureml-logs"
        return [(logs / f"70_driver_log_{rank}.txt").read_text() for rank in (0, 1)]

    def planned(self, run: Run, name: str) -> Any:
        return json.loads((self.workspace.path / "runs" / run.id / "nodes" / "0" / name).read_text())

    def bare(self, *commands: list[str]) -> Seconds:
        """Commands that are started together."""
        begun = time.monotonic()
        outputs = self.printed(*commands)
        ended = time.monotonic()
        return _last_first_line(outputs) - begun, ended - begun

    def printed(self, *commands: list[str]) -> list[str]:
        """What they print, started together."""
        return [wait()[0] for wait in [self.start(command) for command in commands]]

    def start(self, command: list[str]) -> Callable[[], list[str]]:
        variables = {**os.environ, **AS_ROOT}
        started = subprocess.Popen(command, cwd=self.source, env=variables, stdout=PIPE, stderr=PIPE, text=True)

        def printed() -> list[str]:
            said = started.communicate()
            if started.returncode:
                raise SystemExit(f"{command[:4]} failed\n{said}")
            return [said[0]]

        return printed


def _last_first_line(outputs: list[str]) -> float:
    return max(int(line) for text in outputs for line in text.split()) / 1e9


def measure(rounds: int = 15, training_rounds: int = 5) -> dict[str, Any]:
    """Milliseconds, and ratios of training steps."""
    # Sizes of nodes are v1's business; here they would only be noise.
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="distributed-") as name:
        bench = Bench(Path(name))
        try:
            found: dict[str, Any] = {"rounds": rounds, **_mpi(bench, rounds), **_gloo(bench, rounds)}
            if training_rounds:
                found |= {"training_rounds": training_rounds, **_training(bench, training_rounds)}
            return found
        finally:
            stop(bench.workspace.path)


def _mpi(bench: Bench, rounds: int) -> dict[str, float]:
    mpi = {"distributed_training": Mpi(process_count_per_node=2)}
    run, _, _ = bench.submit(Estimator, "first_line.py", **mpi)
    mpirun = bench.planned(run, "plan.json")["processes"][0]["argv"][0]
    python = bench.planned(run, "ranks.json")["ranks"][0]["argv"][0]
    taken = _in_turns(
        rounds,
        {
            "mpirun": lambda: bench.bare([mpirun, "-np", "2", "--oversubscribe", python, "first_line.py"]),
            "mpi": lambda: bench.through_us(Estimator, **mpi),
        },
    )
    return _figures(taken, "mpi", "mpirun")


def _gloo(bench: Bench, rounds: int) -> dict[str, float]:
    gloo = {"distributed_training": Gloo(), "user_managed": True}
    python = [sys.executable, "first_line.py"]
    taken = _in_turns(
        rounds,
        {
            "two_pythons": lambda: bench.bare(python, python),
            "gloo": lambda: bench.through_us(PyTorch, node_count=2, **gloo),
            "gloo_one_node": lambda: bench.through_us(PyTorch, process_count_per_node=2, **gloo),
        },
    )
    return _figures(taken, "gloo", "two_pythons") | _figures(taken, "gloo_one_node", "two_pythons")


def _training(bench: Bench, rounds: int) -> dict[str, float]:
    gloo = {"distributed_training": Gloo(), "node_count": 2, "pip_packages": [TORCH]}
    horovod = {"distributed_training": Mpi(process_count_per_node=2), "pip_packages": [TORCH, "horovod"]}
    run, _, _ = bench.submit(PyTorch, "first_line.py", **horovod)
    mpirun = bench.planned(run, "plan.json")["processes"][0]["argv"][0]
    with_horovod = bench.planned(run, "ranks.json")["ranks"][0]["argv"][0]
    run, _, _ = bench.submit(PyTorch, "first_line.py", **gloo)
    with_torch = bench.planned(run, "plan.json")["processes"][0]["argv"][0]
    torchrun = [with_torch, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    first = _in_turns(max(3, rounds // 2), {"torchrun": lambda: bench.bare([*torchrun, "first_line.py"])})
    mpi = [mpirun, "-np", "2", with_horovod]
    return {
        "torchrun_first_line_ms": statistics.median(one for one, _ in first["torchrun"]) * 1e3,
        "torchrun_end_ms": statistics.median(one for _, one in first["torchrun"]) * 1e3,
        **_steps(bench, rounds, "gloo", gloo, "torchrun", torchrun),
        **_steps(bench, rounds, "horovod", horovod, "mpirun", mpi),
    }


def _steps(
    bench: Bench, rounds: int, ours: str, settings: dict[str, Any], bare: str, command: list[str]
) -> dict[str, float]:
    script = f"{ours}_loop.py"

    def through_us(turns: str) -> Callable[[], list[str]]:
        run = bench.begin(PyTorch, script, script_params={turns: ours}, **settings)
        return lambda: bench.outputs(run)

    def alone(turns: str) -> Callable[[], list[str]]:
        return bench.start([*command, script, turns, bare])

    taken = []
    for number in range(rounds):
        ways = {ours: through_us, bare: alone} if number % 2 else {bare: alone, ours: through_us}
        taken.append(steps.in_turns(bench.folder / f"turns-{ours}-{number}", ways))
    return {
        f"{ours}_step_under_{bare}_ms": statistics.median(each[bare] for each in taken) * 1e3,
        f"{ours}_step_ms": statistics.median(each[ours] for each in taken) * 1e3,
        f"{ours}_step_ratio": steps.ratio(taken, ours, bare),
    }


def _in_turns(rounds: int, ways: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
    taken: dict[str, list[Any]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        # Each goes first in turn.
        for name in sorted(ways, reverse=number % 2 == 0):
            once = ways[name]()
            # The first round warms the caches: everybody's.
            if number:
                taken[name].append(once)
    return taken


def _figures(taken: Mapping[str, list[Seconds]], ours: str, bare: str) -> dict[str, float]:
    found = {}
    for part, what in enumerate(("first_line", "end")):
        for name in (bare, ours):
            found[f"{name}_{what}_ms"] = statistics.median(each[part] for each in taken[name]) * 1e3
        pairs = zip(taken[ours], taken[bare], strict=True)
        found[f"{ours}_{what}_added_ms"] = statistics.median(one[part] - other[part] for one, other in pairs) * 1e3
        least = min(each[part] for each in taken[ours]) - min(each[part] for each in taken[bare])
        found[f"{ours}_{what}_added_at_best_ms"] = least * 1e3
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--training-rounds", type=int, default=5)
    parser.add_argument("--without-training", action="store_true", help="no torch, no Horovod: they take minutes")
    options = parser.parse_args()
    found = measure(options.rounds, 0 if options.without_training else options.training_rounds)
    if options.json:
        print(json.dumps(found))
    else:
        _show(found)


def _show(found: Mapping[str, Any]) -> None:
    print(f"{'two ranks, one line each (ms)':34} {'first line':>12} {'end':>8}   (allowed: bare + {ALLOWED_MS})")
    for bare, *ways in (("mpirun", "mpi"), ("two_pythons", "gloo", "gloo_one_node", "torchrun")):
        for name in (bare, *ways):
            if f"{name}_end_ms" not in found:
                continue
            line = f"{name:34} {found[f'{name}_first_line_ms']:12.0f} {found[f'{name}_end_ms']:8.0f}"
            if f"{name}_end_added_ms" in found:
                line += f"   + {found[f'{name}_first_line_added_ms']:.0f}, + {found[f'{name}_end_added_ms']:.0f}"
            print(line)
    for name, bare in (("gloo", "torchrun"), ("horovod", "mpirun")):
        if f"{name}_step_ms" in found:
            print(
                f"{name} step {found[f'{name}_step_ms']:.3f} ms, under {bare} "
                f"{found[f'{name}_step_under_{bare}_ms']:.3f} ms: {found[f'{name}_step_ratio']:.3f} "
                "(allowed: 1.02)"
            )


if __name__ == "__main__":
    main()
