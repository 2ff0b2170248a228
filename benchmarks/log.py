"""What logging costs: run.log against the bare write and flush of the same line, and the import of the runtime.

    python benchmarks/log.py [--json]

Both kinds of loop take turns, and each figure is a median, so that a busy machine troubles both alike.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CALLS = 10_000
ROUNDS = 15
STARTS = 15


def log_cost(folder):
    """Microseconds per call of run.log and of write + flush, and their ratio."""
    os.environ.update(TRAINMASTER_RUN_ID="benchmark", TRAINMASTER_RUN_FOLDER=str(folder))
    from trainmaster.job.script import Run

    run = Run.get_context()
    run.log("loss", 0.123456789)
    (journal,) = (folder / "journals").iterdir()
    line = journal.read_text()
    logged, bare = [], []
    with open(folder / "bare.jsonl", "a") as file:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(CALLS):
                file.write(line)
                file.flush()
            middle = time.perf_counter()
            for n in range(CALLS):
                run.log("loss", n + 0.123456789)
            bare.append(middle - start)
            logged.append(time.perf_counter() - middle)
    bare_us, logged_us = (statistics.median(times) / CALLS * 1e6 for times in (bare, logged))
    return {"log_us": logged_us, "write_flush_us": bare_us, "ratio": logged_us / bare_us}


def import_cost(kit):
    """Milliseconds of a bare Python, and of one that asks for its run by either name."""
    programs = {
        "bare_python_ms": "pass",
        "trainmaster_ms": "from trainmaster import Run; Run.get_context()",
        "azureml_ms": "from azureml.core import Run; Run.get_context()",
    }
    env = {**os.environ, "PYTHONPATH": str(kit)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    times = {name: [] for name in programs}
    for _ in range(STARTS + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], env=env, check=True)
            times[name].append(time.perf_counter() - start)
    # The first start compiles.
    return {name: statistics.median(taken[1:]) * 1e3 for name, taken in times.items()}


def measure():
    """All figures."""
    from trainmaster.environments.kit import ensure_kit

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        return {"python": sys.version.split()[0], **log_cost(folder), **import_cost(ensure_kit(folder))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    figures = measure()
    if parser.parse_args().json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:>16}  {figure if isinstance(figure, str) else round(figure, 2)}")


if __name__ == "__main__":
    main()
