"""Builds one environment: `python -m trainmaster.environments.build <folder> <specification> <parent>`.

A process of its own, so that it can be cancelled and killed: what it prints is the run's build log, and the finished
folder appears by one rename. Two builders of the same digest wait for one another.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import time
from pathlib import Path

from trainmaster.environments import base, packages
from trainmaster.environments.prefix import check_buildable, digest, is_ready
from trainmaster.environments.tools import Tools
from trainmaster.errors import AzureMLException
from trainmaster.job import EnvironmentSpec
from trainmaster.orphans import die_with
from trainmaster.plain import from_plain, to_plain


def main(argv: list[str]) -> int:
    """Builds; on failure the last line of standard error is the error as JSON."""
    folder, text, parent = Path(argv[0]), argv[1], argv[2]
    die_with(int(parent))
    try:
        build(folder, from_plain(EnvironmentSpec, json.loads(text)))
    except AzureMLException as error:
        print(error.message, flush=True)
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return 1
    return 0


def build(folder: Path, spec: EnvironmentSpec) -> Path:
    """The folder of the environment, built unless it is there."""
    check_buildable(spec)
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / digest(spec)
    with open(folder / f"{final.name}.lock", "w") as lock:
        _await_lock(lock.fileno())
        if not is_ready(final):
            _remove_leftovers(folder, final.name)
            _build_into(folder / f".building-{final.name}-{os.getpid()}", final, spec)
    return final


def _await_lock(lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another run that builds the same environment", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def _remove_leftovers(folder: Path, name: str) -> None:
    """What a killed builder left (the lock says that none lives), and an environment whose Python went away."""
    if (folder / name).is_dir():
        print(f"environment {name} has lost its Python and is built again", flush=True)
        (folder / name).rename(folder / f".building-{name}-broken")
    for leftover in folder.glob(f".building-{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _build_into(temporary: Path, final: Path, spec: EnvironmentSpec) -> None:
    """The stages: a Python, the packages, what has to be compiled against them."""
    begun = time.monotonic()
    tools = Tools(dict(os.environ))
    try:
        base.make(spec, temporary, tools)
        packages.install(spec, temporary, tools)
        (temporary / "environment.json").write_text(json.dumps(to_plain(spec), indent=1))
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    print(f"environment {final.name} is ready after {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
