"""What clients of the Kubernetes API cost to load: processor time and memory, each in processes of its own.

    python -m benchmarks.kubernetes_clients [--times 9]

uv installs the packages for it into its cache.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess

# What every client needs, and the dispatcher has anyway.
_NEEDED = "import asyncio, json, logging, ssl"
_CLIENTS = {
    "nothing: asyncio, ssl, json and logging alone": ([], ""),
    "http.client of Python": ([], "import http.client"),
    "httptools (HTTP)": (["httptools"], "import httptools"),
    "httptools and websockets' frames (HTTP and exec)": (
        ["httptools", "websockets"],
        "import httptools, websockets.protocol",
    ),
    "httpx and websockets": (["httpx", "websockets"], "import httpx, websockets.asyncio.client"),
    "aiohttp": (["aiohttp"], "import aiohttp"),
    "kubernetes, the official client": (
        ["kubernetes"],
        "import kubernetes.client, kubernetes.config, kubernetes.watch, kubernetes.stream",
    ),
}
_PROGRAM = f"""{_NEEDED}
import time
began = time.process_time()
IMPORTS
used = time.process_time() - began
print(used * 1000, int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6)
"""


def main() -> None:
    """Prints a line for each client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=9)
    times = parser.parse_args().times
    for name, (packages, imports) in _CLIENTS.items():
        found = [_measure(packages, imports) for _ in range(times)]
        milliseconds, megabytes = (statistics.median(values) for values in zip(*found, strict=True))
        print(f"{name:50} {milliseconds:6.0f} ms {megabytes:6.1f} MB")


def _measure(packages: list[str], imports: str) -> list[float]:
    options = [word for package in packages for word in ("--with", package)]
    command = [
        "uv",
        "run",
        "--isolated",
        "--no-project",
        *options,
        "python",
        "-c",
        _PROGRAM.replace("IMPORTS", imports),
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(word) for word in answer.stdout.split()]


if __name__ == "__main__":
    main()
