"""What the node agent costs: from starting it to the script's first line, against starting the script bare.

python benchmarks/agent.py [--rounds 40] [--python /path/to/python] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "trainmaster"
# Not monotonic_ns, which came with Python 3.7.
SCRIPT = "import os, time\nos.write(1, b'%d' % int(time.monotonic() * 1e9))\n"


def measure(rounds: int = 40, python: str = sys.executable) -> dict[str, float]:
    """Medians in milliseconds, the two ways taken in turns so that a busy machine is busy for both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kit = _make_kit(folder / "kit")
        script = folder / "first_line.py"
        script.write_text(SCRIPT)
        bare, through_agent, ending = [], [], []
        for number in range(rounds + 2):
            one = _bare(folder, python, script)
            first_line, end = _through_agent(folder, kit, python, script, number)
            # The first two rounds compile the modules and warm the caches.
            if number >= 2:
                bare.append(one)
                through_agent.append(first_line)
                ending.append(end)
    return {
        "rounds": rounds,
        "bare_ms": _median(bare),
        "agent_ms": _median(through_agent),
        "agent_adds_ms": _median([agent - one for agent, one in zip(through_agent, bare, strict=True)]),
        "script_end_to_agent_end_ms": _median(ending),
    }


def _bare(folder: Path, python: str, script: Path) -> float:
    log = folder / "bare.log"
    log.unlink(missing_ok=True)
    begun = time.monotonic_ns()
    _wait(_spawn([python, "-I", "-S", str(script)], log))
    return (int(log.read_text()) - begun) / 1e6


def _through_agent(folder: Path, kit: Path, python: str, script: Path, number: int) -> tuple[float, float]:
    run = folder / f"run_{number}"
    node = run / "nodes" / "0"
    node.mkdir(parents=True)
    log = run / "files" / "azureml-logs" / "70_driver_log.txt"
    process = {"rank": 0, "argv": [python, "-I", "-S", str(script)], "env": dict(os.environ)}
    plan = {
        "version": 1, "run_id": run.name, "node": 0, "folder": str(run), "layout": None, "links": [],
        "processes": [{**process, "cwd": str(run / "code"), "log": str(log)}],
        "grace_seconds": 1.0, "time_limit_seconds": None, "notify": None,
    }  # fmt: skip
    (node / "plan.json").write_text(json.dumps(plan))
    agent = str(kit / "trainmaster" / "job" / "agent" / "__main__.py")
    begun = time.monotonic_ns()
    _wait(_spawn([python, "-I", "-S", "-E", agent, str(node / "plan.json")], node / "agent.log"))
    ended = time.monotonic_ns()
    result = json.loads((node / "result.json").read_text())
    if result["reason"] != "exited" or result["first_failure"]:
        raise SystemExit(f"the measured run failed: {result}")
    first_line = int(log.read_text())
    return (first_line - begun) / 1e6, (ended - first_line) / 1e6


def _spawn(argv: list[str], log: Path) -> int:
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setsid=True)


def _wait(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"a measured process ended with status {status}")


def _make_kit(kit: Path) -> Path:
    package = kit / "trainmaster"
    package.mkdir(parents=True)
    for name in ("__init__.py", "onnx.py"):
        shutil.copy(SOURCE / name, package)
    shutil.copytree(SOURCE / "job", package / "job", ignore=shutil.ignore_patterns("__pycache__"))
    return kit


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.rounds, os.path.abspath(options.python))
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
