"""What other clients notice while a run's million metric names are brought into the store.

One client asks for the journals of a run to be read; another asks for other things meanwhile, as quickly as it is
answered: its times, beside those of the same requests before.

    python -m benchmarks.ingest [--names 1000000] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.submit import stop
from trainmaster import Experiment, Workspace
from trainmaster.shared.folders import WorkspaceFolder

Ask = Callable[[], Any]

GOAL_MS = 50.0
_QUIET_ROUNDS = 300


def measure(names: int = 1_000_000) -> dict[str, Any]:
    """Milliseconds of each kind of request, while nothing else is asked and during the ingest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ws")
        workspace = Workspace.create("measured", path=path, show_output=False)
        large, other = (Experiment(workspace, "e").start_logging(snapshot_directory=None) for _ in range(2))
        requests: dict[str, Ask] = {
            "get a run": lambda: workspace.connection.call("runs.get", run_id=other.id),
            "list runs": lambda: workspace.connection.call("runs.list", query={"experiment": "e"}),
            "set a tag": lambda: workspace.connection.call("runs.tags.set", run_id=other.id, tags={"a": "b"}),
        }
        quiet: dict[str, list[float]] = {name: [] for name in requests}
        for _ in range(_QUIET_ROUNDS):
            _ask_all(requests, quiet)
        _write_journal(WorkspaceFolder(path).run(large.id).journals, names)
        busy: dict[str, list[float]] = {name: [] for name in requests}
        seconds = _ask_during(
            lambda: Workspace(path=path).connection.call("runs.ingest", run_id=large.id), requests, busy
        )
        assert len(workspace.connection.call("runs.metrics", run_id=large.id)) == names
        large.complete()
        other.complete()
        stop(path)
    everything = [each for times in busy.values() for each in times]
    return {
        "names": names,
        "ingest_seconds": seconds,
        "requests": len(everything),
        "p99_ms": _percentile(everything, 99),
        "quiet": {name: _figures(times) for name, times in quiet.items()},
        "during": {name: _figures(times) for name, times in busy.items()},
    }


def _write_journal(folder: Path, names: int) -> None:
    """All at once, so that only reading it is measured."""
    with open(folder / "0-1-00000000.jsonl", "w") as file:
        for number in range(names):
            file.write(f'{{"k":"metric","n":"layer{number}/norm","v":{number * 0.5},"t":{1e9 + number}}}\n')


def _ask_during(work: Ask, requests: dict[str, Ask], times: dict[str, list[float]]) -> float:
    begun = time.perf_counter()
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        _ask_all(requests, times)
    return time.perf_counter() - begun


def _ask_all(requests: dict[str, Ask], times: dict[str, list[float]]) -> None:
    for name, ask in requests.items():
        begun = time.perf_counter()
        ask()
        times[name].append(1000 * (time.perf_counter() - begun))


def _figures(times: list[float]) -> dict[str, float]:
    return {"median_ms": statistics.median(times), "p99_ms": _percentile(times, 99), "longest_ms": max(times)}


def _percentile(times: list[float], percent: int) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.names)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{figures['names']:,} metric names were read in {figures['ingest_seconds']:.1f} s")
    print(f"{figures['requests']:,} requests of another client meanwhile: p99 {figures['p99_ms']:.1f} ms", end="")
    print(f" (goal: under {GOAL_MS:.0f} ms)")
    for name, during in figures["during"].items():
        quiet = figures["quiet"][name]
        print(f"  {name:10}", end="")
        for which, shown in (("median_ms", "median"), ("p99_ms", "p99"), ("longest_ms", "longest")):
            print(f"  {shown} {during[which]:8.2f} ms (quiet {quiet[which]:.2f})", end="")
        print()


if __name__ == "__main__":
    main()
