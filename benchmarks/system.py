"""What it costs to measure what runs use: processor time of the agent, with and without measuring.

    python -m benchmarks.system [--seconds 60] [--json]

The ranks sleep. Of a real agent, and of the process that it forks to measure, the processor time is read from /proc for
the given time. The goal is less than 0.5 % of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import trainmaster

GOAL_PERCENT = 0.5
RANKS = (1, 8, 64)
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Prints one line for each number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = compare(options.seconds)
    if options.json:
        print(json.dumps(found))
        return
    print("ranks  measurements  values in each  agent (off)  agent and measuring  share of a core  goal")
    for row in found:
        verdict = "met" if row["percent_of_a_core"] < GOAL_PERCENT else "MISSED"
        print(
            f"{row['ranks']:5}  {row['measurements']:12}  {row['values']:14}  {row['off_ms']:8.1f} ms  "
            f"{row['on_ms']:16.1f} ms  {row['percent_of_a_core']:13.3f} %  {GOAL_PERCENT} % {verdict}"
        )


def compare(seconds: float) -> list[dict[str, Any]]:
    """For each number of ranks, what the agent takes without and with measuring."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        kit = make_kit(Path(folder) / "kit")
        for ranks in RANKS:
            off, _, _ = measure(Path(folder) / f"off-{ranks}", kit, ranks, seconds, {"sample_seconds": 0})
            on, count, values = measure(Path(folder) / f"on-{ranks}", kit, ranks, seconds, {})
            share = round(100 * max(0.0, on - off) / seconds, 3)
            times = {"off_ms": round(1000 * off, 1), "on_ms": round(1000 * on, 1), "percent_of_a_core": share}
            found.append({"ranks": ranks, "measurements": count, "values": values, **times})
    return found


def make_kit(kit: Path) -> Path:
    """The job side, as the dispatcher lays it out for agents."""
    source = Path(trainmaster.__file__).parent
    (kit / "trainmaster").mkdir(parents=True)
    shutil.copy(source / "__init__.py", kit / "trainmaster")
    shutil.copytree(source / "job", kit / "trainmaster" / "job", ignore=shutil.ignore_patterns("__pycache__"))
    return kit


def measure(folder: Path, kit: Path, ranks: int, seconds: float, settings: dict[str, Any]) -> tuple[float, int, int]:
    """Seconds of processor time of an agent and its measuring process; how many measurements, and values in one."""
    node = folder / "nodes" / "0"
    node.mkdir(parents=True)
    process = {"argv": ["sleep", "3600"], "env": {"PATH": os.environ["PATH"]}, "cwd": str(folder)}
    processes = [{"rank": rank, "log": str(folder / f"{rank}.log"), **process} for rank in range(ranks)]
    plan = {
        "version": 1, "run_id": folder.name, "node": 0, "folder": str(folder), "layout": None, "links": [],
        "processes": processes, "grace_seconds": 1.0, "time_limit_seconds": None, "notify": None, **settings,
    }  # fmt: skip
    (node / "plan.json").write_text(json.dumps(plan))
    program = kit / "trainmaster" / "job" / "agent" / "__main__.py"
    with open(node / "agent.log", "wb") as log:
        agent = subprocess.Popen([sys.executable, "-I", "-S", "-E", program, node / "plan.json"], stderr=log)
    try:
        while not (node / "running.json").exists():
            time.sleep(0.01)
        before = read_processor_time(agent.pid)
        time.sleep(seconds)
        spent = read_processor_time(agent.pid) - before
        records = [line for path in folder.glob("journals/system-*") for line in path.read_text().splitlines()]
        values = sum(map(len, json.loads(records[-1])["v"].values())) if records else 0
        return spent, len(records), values
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.wait()


def read_processor_time(agent: int) -> float:
    """Of the agent and of the process that it forked to measure, which runs the same program."""
    program = Path(f"/proc/{agent}/cmdline").read_bytes()
    pids = [agent, *map(int, Path(f"/proc/{agent}/task/{agent}/children").read_text().split())]
    return sum(_read_time(pid) for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes() == program)


def _read_time(pid: int) -> float:
    # Nanoseconds on a CPU; /proc/<pid>/stat counts ticks of ten milliseconds.
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
