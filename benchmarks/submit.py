"""`submit()` in a warm program to the script's first line, against `subprocess` of the same script.

Also: the same with 100,000 finished runs in the workspace, against with none; and after a change of the script, whose
copy has to be on the disk before `submit()` returns, against an unchanged one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder

_SCRIPT = """import time
now = time.monotonic_ns()
import os, sys
with open(sys.argv[1], "w") as file:
    file.write(str(now))
"""


def measure(rounds: int = 25, finished_runs: int = 100_000) -> dict[str, Any]:
    """Medians in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        source = make_source(base / "project")
        empty, full = _workspace(base / "empty"), _workspace(base / "full")
        fill(base / "full", finished_runs)
        figures: dict[str, list[float]] = {"bare": [], "empty": [], "changed": [], "full": []}
        for number in range(rounds + 2):
            for name, once in (
                ("bare", lambda place: bare(source, place)),
                ("empty", lambda place: submitted(empty, source, place)),
                ("changed", lambda place: submitted(empty, change(source), place)),
                ("full", lambda place: submitted(full, source, place)),
            ):
                took = once(base / "first-line")
                # The first rounds warm the caches: everybody's.
                if number >= 2:
                    figures[name].append(took)
        for each in ("empty", "full"):
            stop(base / each)
    medians = {name: statistics.median(values) for name, values in figures.items()}
    return {
        "bare_ms": medians["bare"],
        "submit_ms": medians["empty"],
        "added_ms": medians["empty"] - medians["bare"],
        "submit_changed_ms": medians["changed"],
        "change_ms": medians["changed"] - medians["empty"],
        "submit_with_finished_runs_ms": medians["full"],
        "ratio_full_to_empty": medians["full"] / medians["empty"],
        "finished_runs": finished_runs,
        "rounds": rounds,
    }


def make_source(folder: Path, files: int = 20) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(_SCRIPT)
    for number in range(files - 1):
        (folder / f"module_{number}.py").write_text(f"VALUE = {number}\n" * 50)
    return folder


def change(source: Path) -> Path:
    """The folder, with a script that no snapshot has yet."""
    (source / "train.py").write_text(f"{_SCRIPT}# {os.urandom(8).hex()}\n")
    return source


def _workspace(folder: Path) -> Experiment:
    return Experiment(Workspace.create(folder.name, path=folder, show_output=False), "bench")


def fill(folder: Path, count: int) -> None:
    """Finished runs, straight into the database: the dispatcher is stopped meanwhile."""
    from trainmaster.dispatcher.store import Store
    from trainmaster.shared.records import RunRecord, Status

    stop(folder)
    store = Store.open(WorkspaceFolder(folder).database)
    for first in range(0, count, 10_000):
        store.runs.add_many(
            [
                RunRecord(f"old_{n}", "bench", Status.COMPLETED, created_at=float(n), target="local")
                for n in range(first, min(first + 10_000, count))
            ]
        )
    store.close()


def bare(source: Path, place: Path) -> float:
    place.unlink(missing_ok=True)
    begun = time.monotonic_ns()
    subprocess.run([sys.executable, str(source / "train.py"), str(place)], check=True)
    return (int(place.read_text()) - begun) / 1e6


def submitted(experiment: Experiment, source: Path, place: Path) -> float:
    place.unlink(missing_ok=True)
    begun = time.monotonic_ns()
    estimator = Estimator(
        str(source), entry_script="train.py", script_params={str(place): ""}, compute_target="local", user_managed=True
    )
    run = experiment.submit(estimator)
    run.wait_for_completion()
    return (int(place.read_text()) - begun) / 1e6


def stop(folder: Path) -> None:
    """Ends the dispatcher and returns when it is gone."""
    workspace = WorkspaceFolder(folder)
    line = try_line(workspace)
    if line is None:
        return
    handle = os.pidfd_open(int(workspace.lock.read_text()))
    with contextlib.suppress(EOFError, ConnectionError):
        line.send({"id": 1, "op": "shutdown", "args": {}})
        while True:
            line.receive()
    line.close()
    import select

    select.select([handle], [], [], 30)
    os.close(handle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    found = measure(options.rounds, options.runs)
    if options.json:
        print(json.dumps(found))
        return
    print(f"subprocess of the script, to its first line      {found['bare_ms']:7.1f} ms")
    print(f"submit() to its first line                       {found['submit_ms']:7.1f} ms")
    print(f"added                                            {found['added_ms']:7.1f} ms   (target: 60)")
    print(f"submit() after a change, flushed to the disk     {found['submit_changed_ms']:7.1f} ms")
    print(f"a change costs                                   {found['change_ms']:7.1f} ms   (target: 20)")
    count, took = found["finished_runs"], found["submit_with_finished_runs_ms"]
    print(f"submit() with {count:,} finished runs            {took:7.1f} ms")
    print(f"ratio                                            {found['ratio_full_to_empty']:7.2f}      (target: 1.2)")


if __name__ == "__main__":
    main()
