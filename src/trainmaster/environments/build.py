"""Builds one environment: `python -m trainmaster.environments.build <folder> <specification> <parent> [--refresh]`.

A process of its own, so that it can be cancelled and killed: what it prints is the run's build log, and the finished
folder appears by one rename. Two builders of the same digest wait for one another.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from trainmaster.environments import base, facts, lock, manifest, packages
from trainmaster.environments.canonical import canonical
from trainmaster.environments.prefix import check_buildable, digest, is_ready, python_version, ready, target
from trainmaster.environments.pythons import find_python
from trainmaster.environments.tools import Tools
from trainmaster.errors import AzureMLException, EnvironmentException, from_wire
from trainmaster.job import EnvironmentSpec
from trainmaster.orphans import die_with
from trainmaster.plain import from_plain


def main(argv: list[str]) -> int:
    """Builds; on failure the last line of standard error is the error as JSON."""
    folder, text, parent = Path(argv[0]), argv[1], argv[2]
    die_with(int(parent))
    try:
        build(folder, from_plain(EnvironmentSpec, json.loads(text)), refresh="--refresh" in argv[3:])
    except AzureMLException as error:
        print(error.message, flush=True)
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return 1
    return 0


def build(folder: Path, spec: EnvironmentSpec, refresh: bool = False) -> Path:
    """The real folder of the environment, built unless it is there; `refresh` builds it anew beside the old one."""
    check_buildable(spec)
    name, spec = digest(spec), canonical(spec)
    tools = Tools(dict(os.environ))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before, begun = target(folder, name), time.time()
        with _only_builder(folder, name) as waited:
            found = ready(folder, name)
            if found is not None and not (refresh and found == before):
                return found
            if waited:
                _raise_failure_of_other(folder, name, begun, tools)
            return _build_next(folder, name, spec, tools)
    except OSError as error:
        raise _system_error(error) from None


@contextlib.contextmanager
def _only_builder(folder: Path, name: str) -> Iterator[bool]:
    """Holds the lock of this environment; says whether it had to be waited for."""
    with open(folder / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            print("waiting for another run that builds the same environment", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        yield waited


def _build_next(folder: Path, name: str, spec: EnvironmentSpec, tools: Tools) -> Path:
    _remove_leftovers(folder, name)
    present = target(folder, name)
    if present is not None and not is_ready(present):
        print(f"environment {name} is not whole any more (files are missing) and is built again", flush=True)
    numbers = [_number(path) for path in folder.glob(f"{name}.*")]
    final = folder / f"{name}.{max([0, *numbers]) + 1}"
    print(f"building environment {final.name}", flush=True)
    try:
        _build_into(folder / f".building-{name}-{os.getpid()}", final, spec, tools)
    except AzureMLException as error:
        _keep_failure(folder, name, error, tools)
        raise
    _point(folder, name, final.name)
    _failure(folder, name).unlink(missing_ok=True)
    return final


def _remove_leftovers(folder: Path, name: str) -> None:
    """What a killed builder left; the lock says that none lives."""
    for leftover in folder.glob(f".building-{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in folder.glob(f".pointing-{name}-*"):
        leftover.unlink(missing_ok=True)


def _build_into(temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools) -> None:
    """The stages: a Python, the packages, what has to be compiled against them."""
    begun = time.monotonic()
    try:
        _base_and_packages(temporary, final, spec, tools)
        if spec.horovod:
            from trainmaster.environments import compiled

            compiled.install(spec, temporary, tools)
        facts.write(temporary, spec, final.name, seconds=time.monotonic() - begun)
        manifest.record(temporary)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    print(f"environment {final.name} is ready after {time.monotonic() - begun:.1f} s", flush=True)


def _base_and_packages(temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools) -> None:
    work = temporary.with_name(f"{temporary.name}.resolving")
    try:
        if spec.conda_packages:
            # What conda brings decides what pip may take.
            left = _completed(base.make(spec, temporary, final, tools))
            found = packages.resolve(left, f"{temporary}/bin/python", work, tools, lock.installed(temporary))
        else:
            making = base.begin(spec, temporary, tools)
            try:
                python = find_python(python_version(spec))
                found = packages.resolve(_completed(spec), python, work, tools, meanwhile=making.ask)
            finally:
                making.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    packages.install(found, temporary, tools)


def _completed(spec: EnvironmentSpec) -> EnvironmentSpec:
    """`spec` with the packages that Horovod and Open MPI need."""
    if not spec.horovod and not spec.open_mpi:
        return spec
    # Loaded only where it is needed: a small environment takes less than a second.
    from trainmaster.environments import compiled

    return compiled.completed(spec)


def _number(path: Path) -> int:
    number = path.name.rpartition(".")[2]
    return int(number) if number.isdigit() else 0


def _point(folder: Path, name: str, to: str) -> None:
    """The name leads to the new build from now on, in one step; those who use the old one keep it."""
    link = folder / f".pointing-{name}-{os.getpid()}"
    link.symlink_to(to)
    link.replace(folder / name)


# What one builder learned, others that waited for it need not learn again.


def _failure(folder: Path, name: str) -> Path:
    return folder / f"{name}.failed"


def _keep_failure(folder: Path, name: str, error: AzureMLException, tools: Tools) -> None:
    with contextlib.suppress(OSError):
        _failure(folder, name).write_text(json.dumps({"sources": _sources_key(tools), "error": error.to_wire()}))


def _raise_failure_of_other(folder: Path, name: str, since: float, tools: Tools) -> None:
    """Ten runs that wait for a build that fails, fail with it; with other package sources it is worth a try."""
    try:
        if _failure(folder, name).stat().st_mtime < since:
            return
        kept = json.loads(_failure(folder, name).read_text())
        if kept["sources"] != _sources_key(tools):
            return
        error = from_wire(kept["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    print("the other run could not build it", flush=True)
    raise error


def _sources_key(tools: Tools) -> str:
    return hashlib.sha256(json.dumps(tools.index_options).encode()).hexdigest()


def _system_error(error: OSError) -> EnvironmentException:
    place = f": {error.filename}" if error.filename else ""
    hint = ""
    if error.errno in (28, 122):
        hint = "Make room ('trainmaster env prune' removes environments that are not in use), then submit again."
    return EnvironmentException(f"the environment could not be built: {error.strerror or error}{place}", hint=hint)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of py-rattler may outlive their work, and abort an interpreter that takes itself down around them.
    os._exit(code)
