"""Builds one environment in a separate process, which reads what `order` writes.

The process can be cancelled or killed at any time. What it prints is the run's build log. The finished folder appears
by one rename. Two builders of the same digest wait for each other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import marshal
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from trainmaster.environments import base, build_record, lock, manifest, packages
from trainmaster.environments.canonical import canonical
from trainmaster.environments.checks import check_buildable
from trainmaster.environments.log import Log
from trainmaster.environments.prefix import digest, find_ready, is_ready, python_version, target
from trainmaster.environments.pythons import python_for
from trainmaster.environments.resolver_process import ResolverProcess
from trainmaster.environments.sources import config_files, source_variables
from trainmaster.environments.tools import Tools
from trainmaster.job.agent import durable
from trainmaster.job.agent.shortage import is_temporary
from trainmaster.job.errors import EnvironmentException, TrainmasterError, from_wire
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.orphans import die_with
from trainmaster.shared.serialization import from_plain, to_plain

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def order(folder: Path, spec: EnvironmentSpec, variables: Mapping[str, str], refresh: bool = False) -> bytes:
    """The standard input of a `python -m trainmaster.environments` that builds `spec` with these `variables`.

    It is not passed on the command line, which every user can read: a specification may contain passwords.
    """
    try:
        question = _first_question(spec, Tools(variables))
    except (TrainmasterError, OSError):
        # The builder runs into the same error and reports it in the build log.
        question = None
    return marshal.dumps((str(folder), json.dumps(to_plain(spec)), os.getpid(), refresh, question))


def _first_question(spec: EnvironmentSpec, tools: Tools) -> lock.Question | None:
    if spec.conda_packages or spec.is_of_image or spec.lock:
        return None
    if any(file.exists() and not file.is_file() for file in config_files(tools.environ)):
        # A pipe can be read only once and may block. The builder reads it, because the builder can be killed.
        return None
    asked = _add_compiled_requirements(canonical(spec), tools)
    return packages.first_question(packages.plan_packages(asked, python_for(asked), tools))


def main(folder: str, specification: str, parent: int, refresh: bool, early: ResolverProcess | None) -> int:
    """Build the environment; on failure the last line of standard error is the error as JSON."""
    die_with(parent)
    log = Log(sys.stdout)
    try:
        with contextlib.redirect_stdout(log):
            build(Path(folder), from_plain(EnvironmentSpec, json.loads(specification)), refresh, early)
    except TrainmasterError as error:
        if not log.has(error.cause):
            print(error.message, flush=True)
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return os.EX_TEMPFAIL if _is_passing(error.__cause__) else 1
    return 0


def check(folder: str, specification: str, parent: int, early: ResolverProcess | None) -> int:
    """Check that the packages work together, without building; reports errors as `main` does."""
    die_with(parent)
    try:
        check_packages(Path(folder), from_plain(EnvironmentSpec, json.loads(specification)), early)
    except TrainmasterError as error:
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return 1
    return 0


def check_packages(folder: Path, spec: EnvironmentSpec, early: ResolverProcess | None = None) -> None:
    """Refuse packages that are available but known not to work together. The build reports all other errors."""
    name, tools = digest(spec), Tools(dict(os.environ))
    spec = _add_compiled_requirements(canonical(spec), tools)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder, name, patient=False):
            _check_lock(folder / f".building-{name}-{os.getpid()}", spec, tools, early)
    except OSError:
        # Another process builds this environment, or the disk is full: the build reports it.
        return
    finally:
        if early is not None:
            early.close()


def _check_lock(work: Path, spec: EnvironmentSpec, tools: Tools, early: ResolverProcess | None) -> None:
    try:
        wanted = packages.plan_packages(spec, python_for(spec), tools)
        asked = early if early is not None and early.question == packages.first_question(wanted) else None
        found = packages.resolve(wanted, spec, work, tools, asked)
    except EnvironmentException:
        return
    try:
        packages.check_lock(found, spec, work, tools)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def build(folder: Path, spec: EnvironmentSpec, refresh: bool = False, early: ResolverProcess | None = None) -> Path:
    """Build the environment unless it exists, and return its real folder; `refresh` always builds a new one.

    `early` is a uv process that is already resolving the packages.
    """
    check_buildable(spec)
    name, spec = digest(spec), canonical(spec)
    tools = Tools(dict(os.environ))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before, begun = target(folder, name), time.time()
        with _only_builder(folder, name) as waited:
            found = find_ready(folder, name)
            if found is not None and not (refresh and found == before) and not build_record.is_outdated(found, spec):
                return found
            if waited:
                _raise_failure_of_other(folder, name, begun, tools)
            return _build_next(folder, name, spec, tools, early)
    except OSError as error:
        raise _system_error(error) from error
    finally:
        if early is not None:
            early.close()


@contextlib.contextmanager
def _only_builder(folder: Path, name: str, patient: bool = True) -> Iterator[bool]:
    """Hold the lock of this environment; yields whether it had to wait. Without `patient`, raise instead of waiting."""
    with open(folder / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            if not patient:
                raise
            print("waiting for another run that is building the same environment", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        yield waited


def _build_next(folder: Path, name: str, spec: EnvironmentSpec, tools: Tools, early: ResolverProcess | None) -> Path:
    _remove_leftovers(folder, name)
    present = target(folder, name)
    if present is not None and not is_ready(present):
        print(f"environment {name} is damaged (files are missing or changed): building it again", flush=True)
        if _forget_damaged(present, tools) and early is not None:
            # It may have used cached files that were just removed.
            early.close()
            early = None
    numbers = [_number(path) for path in folder.glob(f"{name}.*")]
    final = folder / f"{name}.{max([0, *numbers]) + 1}"
    print(f"building environment {final.name}", flush=True)
    try:
        _build_into(folder / f".building-{name}-{os.getpid()}", final, spec, tools, early)
    except TrainmasterError as error:
        _keep_failure(folder, name, error, tools)
        raise
    _point(folder, name, final.name)
    _failure(folder, name).unlink(missing_ok=True)
    return final


def _forget_damaged(folder: Path, tools: Tools) -> bool:
    """Remove overwritten packages from uv's cache: its files may be hard links to the damaged ones."""
    try:
        files = set(manifest.list_changed(folder))
    except (OSError, ValueError):
        return False
    names = [path.name.partition("-")[0] for path in lock.distributions(folder) if files & _files_of(path, folder)]
    if names:
        print(f"changed: {', '.join(sorted(files)[:5])}; fetching {', '.join(sorted(names))} again", flush=True)
        tools.attempt(tools.uv_command(["cache", "clean", "--force", *names]))
    return bool(names)


def _files_of(distribution: Path, folder: Path) -> set[str]:
    """List the files that a package installed, relative to the environment's folder."""
    base = distribution.parent.relative_to(folder)
    try:
        lines = (distribution / "RECORD").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {os.path.normpath(base / line.partition(",")[0]) for line in lines}


def _remove_leftovers(folder: Path, name: str) -> None:
    """Remove what a killed builder left behind. The lock guarantees that no builder is running."""
    for leftover in folder.glob(f".building-{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in folder.glob(f".pointing-{name}-*"):
        leftover.unlink(missing_ok=True)


def _build_into(
    temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools, early: ResolverProcess | None
) -> None:
    """Run the stages: Python, packages, and what has to be compiled against the packages."""
    begun = time.monotonic()
    try:
        used = _install_for_fitting_python(temporary, final, spec, tools, early)
        if spec.horovod:
            from trainmaster.environments import compiled

            compiled.install(used, temporary, tools)
        build_record.write(temporary, spec, python_version(used), final.name, seconds=time.monotonic() - begun)
        manifest.record(temporary)
        # Flush the whole file system: uv hard-linked thousands of files, some of which it wrote only seconds ago.
        durable.flush_file_system(temporary)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    print(f"environment {final.name} is ready after {time.monotonic() - begun:.1f} s", flush=True)


def _install_for_fitting_python(
    temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools, early: ResolverProcess | None
) -> EnvironmentSpec:
    """Run the first two stages, with another Python if the requested one is missing or does not fit the packages.

    Returns the spec with the Python that was used.
    """
    if spec.lock:
        return _install_lock(temporary, final, spec, tools)
    try:
        _install_base_and_packages(temporary, final, spec, tools, early)
        return spec
    except EnvironmentException as error:
        from trainmaster.environments import other_python

        fit = other_python.find_fit(spec, error, tools)
    shutil.rmtree(temporary, ignore_errors=True)
    used = replace(spec, python_version=fit.python)
    _install_base_and_packages(temporary, final, used, tools, None, fit.constraints)
    build_record.warn(temporary, f"Python {fit.python} is used: {fit.reason}")
    return used


def _install_base_and_packages(
    temporary: Path,
    final: Path,
    spec: EnvironmentSpec,
    tools: Tools,
    early: ResolverProcess | None,
    constraints: tuple[str, ...] = (),
) -> None:
    work = temporary.with_name(f"{temporary.name}.resolving")
    try:
        if spec.conda_packages:
            # The conda packages constrain what pip may install.
            asked = _add_compiled_requirements(base.make(spec, temporary, final, tools), tools)
            present = (*lock.list_installed(temporary), *constraints)
            wanted = packages.plan_packages(asked, f"{temporary}/bin/python", tools, present)
            found = packages.resolve(wanted, asked, work, tools)
        else:
            found = _resolve_while_creating(
                temporary, _add_compiled_requirements(spec, tools), work, tools, early, constraints
            )
        packages.check_lock(found, spec, work, tools)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    packages.install(found, temporary, tools)
    packages.check_installed(temporary, spec)


def _install_lock(temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools) -> EnvironmentSpec:
    """Run the first two stages with the Python and the packages of an earlier build; nothing is resolved."""
    kept, text, conda = lock.restore(spec)
    print("the packages are those of an earlier lock", flush=True)
    used = replace(spec, conda_packages=conda, python_version=lock.python_of(kept) or spec.python_version)
    base.make(used, temporary, final, tools)
    sources = lock.sources_of(used, tools)
    packages.install(packages.Resolved(text, "", sources, f"{temporary}/bin/python"), temporary, tools)
    lock.write_again(temporary, kept)
    packages.check_installed(temporary, used)
    return used


def _resolve_while_creating(
    temporary: Path,
    spec: EnvironmentSpec,
    work: Path,
    tools: Tools,
    early: ResolverProcess | None,
    constraints: tuple[str, ...],
) -> packages.Resolved:
    """Resolve the packages while uv creates the virtual environment."""
    wanted = packages.plan_packages(spec, python_for(spec), tools, constraints)
    question = packages.first_question(wanted)
    asking = early if early is not None and early.question == question else None
    if asking is None and question is not None:
        asking = ResolverProcess(*question)
    try:
        making = base.begin(spec, temporary, tools)
        try:
            making.ask()
            return packages.resolve(wanted, spec, work, tools, asking)
        finally:
            making.close()
    finally:
        if asking is not None:
            asking.close()


def _add_compiled_requirements(spec: EnvironmentSpec, tools: Tools) -> EnvironmentSpec:
    """Add the packages that Horovod and Open MPI need."""
    if not spec.horovod and not spec.open_mpi:
        return spec
    # Imported only when needed: building a small environment takes less than a second.
    from trainmaster.environments import compiled

    return compiled.add_requirements(spec, tools.environ)


def _number(path: Path) -> int:
    number = path.name.rpartition(".")[2]
    return int(number) if number.isdigit() else 0


def _point(folder: Path, name: str, to: str) -> None:
    """Atomically point the name to the new build. Runs that use the old build keep it."""
    link = folder / f".pointing-{name}-{os.getpid()}"
    link.symlink_to(to)
    link.replace(folder / name)
    durable.flush_one(folder)


# Builders that waited for another one reuse its error instead of failing the same way again.


def _failure(folder: Path, name: str) -> Path:
    return folder / f"{name}.failed"


def _keep_failure(folder: Path, name: str, error: TrainmasterError, tools: Tools) -> None:
    with contextlib.suppress(OSError):
        _failure(folder, name).write_text(json.dumps({"sources": _sources_key(tools), "error": error.to_wire()}))


def _raise_failure_of_other(folder: Path, name: str, since: float, tools: Tools) -> None:
    """Raise the error of the builder this process waited for, unless that one used other package sources."""
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
    sources = [sorted(tools.settings.items()), sorted(source_variables(tools.environ).items())]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def _is_passing(error: BaseException | None) -> bool:
    """Whether the same build may succeed later. A full disk needs a person."""
    return bool(is_temporary(error)) and getattr(error, "errno", 0) not in _NO_ROOM


def _system_error(error: OSError) -> EnvironmentException:
    place = f": {error.filename}" if error.filename else ""
    hint = ""
    if error.errno in _NO_ROOM:
        hint = "Free disk space ('trainmaster env prune' removes unused environments), then submit again."
    return EnvironmentException(f"the environment could not be built: {error.strerror or error}{place}", hint=hint)
