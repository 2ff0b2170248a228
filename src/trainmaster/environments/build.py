"""Builds one environment with uv: `python -m trainmaster.environments.build <folder> <specification> <parent>`.

A process of its own, so that it can be cancelled and killed: what it prints is the run's build log, and the finished
folder appears by one rename. Two builders of the same digest wait for one another.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from trainmaster.environments.prefix import check_buildable, digest, is_ready, python_version
from trainmaster.environments.pythons import find_python
from trainmaster.environments.sources import pip_settings, uv_options, uv_variables
from trainmaster.errors import AzureMLException, EnvironmentException
from trainmaster.job import EnvironmentSpec
from trainmaster.orphans import die_with
from trainmaster.plain import from_plain, to_plain

_SHOWN_LINES = 15


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
    begun = time.monotonic()
    settings = pip_settings(os.environ)
    python = find_python(python_version(spec))
    try:
        _uv(
            ["venv", "--relocatable", "--no-project", "--python", python, str(temporary)],
            settings,
            f"venv --python {python}",
        )
        if spec.pip_packages:
            # The options are not shown: an index may have a password in its address.
            options = ["--python", f"{temporary}/bin/python", *uv_options(settings)]
            shown = f"pip install {' '.join(spec.pip_packages)}"
            _uv(["pip", "install", *options, *_requirements(spec)], settings, shown)
        (temporary / "environment.json").write_text(json.dumps(to_plain(spec), indent=1))
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    print(f"environment {final.name} is ready after {time.monotonic() - begun:.1f} s", flush=True)


def _requirements(spec: EnvironmentSpec) -> list[str]:
    """The packages as arguments: an option with its value becomes two."""
    arguments: list[str] = []
    for package in spec.pip_packages:
        arguments += package.split(None, 1) if package.startswith("-") else [package]
    return arguments


def _uv(arguments: list[str], settings: dict[str, str], shown: str) -> None:
    """Runs uv; what it says is shown as it says it, and its last lines are the cause if it fails."""
    from uv import find_uv_bin

    print(f"$ uv {shown}", flush=True)
    me = os.getpid()
    process = subprocess.Popen(
        [os.fsdecode(find_uv_bin()), *arguments],
        env={**uv_variables(settings, os.environ), "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=lambda: die_with(me),
    )
    assert process.stdout is not None
    last: deque[str] = deque(maxlen=_SHOWN_LINES)
    for line in process.stdout:
        print(line, end="", flush=True)
        last.append(line)
    if process.wait():
        raise EnvironmentException(
            f"the environment could not be built: 'uv {shown}' ended with {process.returncode}",
            cause="".join(last).rstrip(),
            hint="Check the names and versions in pip_packages, and pip's configured package sources.",
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
