"""What the command line costs: `trainmaster submit --wait` against `python script.py`, both through the same shell.

python benchmarks/shell.py [--rounds 20] [--cold-rounds 5] [--json]

`first_line` is from the shell's start to the script's first line; `return` from the script's end to the end of the
command. Warm: the dispatcher lives. Cold: it was stopped before. The ways are taken in turns, so that a busy machine is
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
from pathlib import Path

SCRIPT = """\
import time
print(time.monotonic(), flush=True)
time.sleep(0.02)
print(time.monotonic(), flush=True)
"""
TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))


def measure(rounds: int = 20, cold_rounds: int = 5) -> dict[str, float]:
    """Medians in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        (project / "script.py").write_text(SCRIPT)
        variables = _variables(folder)
        bare = f"{sys.executable} {project}/script.py"
        submit = f"{TRAINMASTER} submit {project} script.py --user-managed --wait"
        try:
            return _measure(bare, submit, variables, rounds, cold_rounds)
        finally:
            _shell(f"{TRAINMASTER} down", variables)


def _measure(bare: str, submit: str, variables: dict[str, str], rounds: int, cold_rounds: int) -> dict[str, float]:
    ways = {"bare": bare, "help": f"{TRAINMASTER} --help", "runs": f"{TRAINMASTER} runs", "warm": submit}
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in (*ways, "cold")}
    for number in range(rounds + 2):
        for name, command in ways.items():
            times = _times(command, variables)
            # The first two rounds compile the modules and warm the caches.
            if number >= 2:
                taken[name].append(times)
    for _ in range(cold_rounds):
        _shell(f"{TRAINMASTER} down", variables)
        taken["cold"].append(_times(submit, variables))
    found: dict[str, float] = {"rounds": rounds, "cold_rounds": cold_rounds}
    found["help_ms"] = _median([total for _, _, total in taken["help"]])
    found["runs_ms"] = _median([total for _, _, total in taken["runs"]])
    for name in ("bare", "warm", "cold"):
        if taken[name]:
            found[f"{name}_first_line_ms"] = _median([first for first, _, _ in taken[name]])
            found[f"{name}_return_ms"] = _median([after for _, after, _ in taken[name]])
    found["warm_adds_ms"] = _median([warm[0] - one[0] for warm, one in zip(taken["warm"], taken["bare"], strict=True)])
    return found


def _times(command: str, variables: dict[str, str]) -> tuple[float, float, float]:
    """Milliseconds to the first line, from the end of the script to the end of the command, and of it all."""
    begun = time.monotonic()
    output = _shell(command, variables)
    ended = time.monotonic()
    total = (ended - begun) * 1e3
    try:
        first, last = (float(word) for word in output.split()[:2])
    except ValueError:
        return total, 0.0, total
    return (first - begun) * 1e3, (ended - last) * 1e3, total


def _shell(command: str, variables: dict[str, str]) -> str:
    done = subprocess.run(["/bin/sh", "-c", command], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _variables(folder: Path) -> dict[str, str]:
    """As a user has them: modules are compiled once, the workspace is one of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TRAINMASTER_HOME": str(folder / "home"), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--cold-rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.rounds, options.cold_rounds)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
