"""Builds one environment with uv: `python -m trainmaster.environments.build <environments folder> <specification>`.

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
from pathlib import Path

from trainmaster.environments.prefix import digest, python_version
from trainmaster.environments.pythons import find_python
from trainmaster.environments.sources import pip_settings, uv_options, uv_variables
from trainmaster.errors import AzureMLException, EnvironmentException
from trainmaster.job import EnvironmentSpec
from trainmaster.plain import from_plain, to_plain


def main(argv: list[str]) -> int:
    """Builds; on failure the last line of standard error is the error as JSON."""
    folder, text = Path(argv[0]), argv[1]
    try:
        build(folder, from_plain(EnvironmentSpec, json.loads(text)))
    except AzureMLException as error:
        print(error.message, flush=True)
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return 1
    return 0


def build(folder: Path, spec: EnvironmentSpec) -> Path:
    """The folder of the environment, built unless it is there."""
    if spec.conda_packages:
        raise EnvironmentException(
            f"conda packages are not in this release: {', '.join(spec.conda_packages)}",
            hint="Give them as pip_packages, or run in an environment of your own with user_managed=True.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / digest(spec)
    with open(folder / f"{final.name}.lock", "w") as lock:
        _await_lock(lock.fileno())
        if not final.is_dir():
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
    """What a killed builder left; the lock says that none lives."""
    for leftover in folder.glob(f".building-{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _build_into(temporary: Path, final: Path, spec: EnvironmentSpec) -> None:
    begun = time.monotonic()
    settings = pip_settings(os.environ)
    python = find_python(python_version(spec))
    try:
        _uv(["venv", "--relocatable", "--no-project", "--python", python, str(temporary)], settings)
        if spec.pip_packages:
            target = ["--python", f"{temporary}/bin/python"]
            _uv(["pip", "install", *target, *uv_options(settings), *_requirements(spec)], settings)
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


def _uv(arguments: list[str], settings: dict[str, str]) -> None:
    from uv import find_uv_bin

    command = [os.fsdecode(find_uv_bin()), *arguments]
    print("$ uv", " ".join(arguments), flush=True)
    done = subprocess.run(
        command,
        env={**uv_variables(settings, os.environ), "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise EnvironmentException(
            f"the environment could not be built: 'uv {arguments[0]}' ended with {done.returncode}",
            cause="Its own words are in azureml-logs/20_image_build_log.txt.",
            hint="Check the names and versions in pip_packages, and pip's configured package sources.",
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
