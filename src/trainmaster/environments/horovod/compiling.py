"""Compiles Horovod: prints a line every 15 seconds, writes everything to a log, reports the first error."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainmaster.environments.horovod.progress import Progress, first_error, minutes
from trainmaster.environments.horovod.recipes import ALTERNATIVE, Order
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.orphans import die_with

_SHOW_EVERY_SECONDS = 15.0
_BYTES_PER_COMPILER = 1_500_000_000


def compile_wheel(order: Order, source: Path, python: Path, variables: Mapping[str, str], log: Path) -> Path:
    """Build the wheel from `source` and return its path."""
    cores = usable_cores(len(os.sched_getaffinity(0)), _available_memory())
    parallel = order.recipes[0].parallel
    estimate = order.seconds * 2 / cores if parallel else order.seconds
    where = f"on {cores} core{'s' if cores > 1 else ''}" if parallel else "on one core"
    print(f"compiling {order.title}: {minutes(estimate)} {where}, once per machine (log: {log})", flush=True)
    begun = time.monotonic()
    process = _start(source, python, {**variables, "MAKEFLAGS": f"-j{cores}"})
    progress = Progress(sum(recipe.steps for recipe in order.recipes))
    with open(log, "w", errors="replace") as kept:
        shown = begun
        for line in _lines(process):
            kept.write(line)
            progress.read(line)
            if (now := time.monotonic()) - shown >= _SHOW_EVERY_SECONDS:
                shown = now
                left = minutes(progress.remaining(now - begun, estimate))
                print(f"compiling {order.title}: {progress.percent} %, {left} left", flush=True)
    code = process.wait()
    wheels = list((source / "dist").glob("horovod-*.whl"))
    if code or not wheels:
        raise _failure(order, code, log)
    print(f"compiled {order.title} in {time.monotonic() - begun:.0f} s", flush=True)
    return wheels[0]


def usable_cores(cores: int, memory: int) -> int:
    """The number of parallel compilers that cores and memory allow.

    >>> [usable_cores(8, 64 * 10**9), usable_cores(8, 4 * 10**9), usable_cores(2, 0)]
    [8, 2, 1]
    """
    return max(1, min(cores, memory // _BYTES_PER_COMPILER))


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _start(source: Path, python: Path, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    me = os.getpid()
    return subprocess.Popen(
        [str(python), "setup.py", "bdist_wheel", "--dist-dir", str(source / "dist")],
        cwd=source,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: die_with(me),
    )


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield the output line by line, and an empty string whenever there is no output for a while."""
    assert process.stdout is not None
    handle = process.stdout.fileno()
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    begun = b""
    while True:
        if not waiting.poll(_SHOW_EVERY_SECONDS * 1000):
            yield ""
            continue
        piece = os.read(handle, 65536)
        if not piece:
            break
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace") + "\n"
    process.stdout.close()
    if begun:
        yield begun.decode(errors="replace")


def _failure(order: Order, code: int, log: Path) -> EnvironmentException:
    alternatives = " ".join(ALTERNATIVE[recipe.framework] for recipe in order.recipes)
    return EnvironmentException(
        f"{order.title} could not be compiled: the build exited with {code}",
        cause=f"{first_error(log.read_text(errors='replace'))}\nFull log: {log}",
        hint=alternatives,
    )
