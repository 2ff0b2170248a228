"""All benchmarks: `python -m benchmarks [--json] [name ...]`, each beside the bare thing in the same run."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

NAMES = (
    "submit",
    "shell",
    "log",
    "snapshot",
    "store",
    "search",
    "postgresql",
    "agent",
    "environments",
    "distributed",
    "ingest",
    "sweeps",
    "serving",
    "active",
    "queue",
    "server",
    "mlflow",
    "mlflow_import",
    "slurm",
    "kubernetes",
    "studio",
    "system",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object, a key for each benchmark")
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)} (default: all)")
    options = parser.parse_args()
    found = {}
    for name in options.names:
        # A process each: no benchmark warms the imports of the next.
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        if options.json:
            done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
            found[name] = json.loads(done.stdout)
        else:
            print(f"\n== {name}", flush=True)
            subprocess.run(command, check=True)
    if options.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
