"""Builds one environment, in a process of its own (`order` says how that is called).

It can be cancelled and killed; what it prints is the run's build log, and the finished folder appears by one rename.
Two builders of the same digest wait for one another.
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

from trainmaster.environments import base, facts, lock, manifest, packages
from trainmaster.environments.ahead import Ahead
from trainmaster.environments.canonical import canonical
from trainmaster.environments.log import Log
from trainmaster.environments.prefix import check_buildable, digest, is_ready, python_version, ready, target
from trainmaster.environments.pythons import python_for
from trainmaster.environments.sources import config_files, source_variables
from trainmaster.environments.tools import Tools
from trainmaster.job.agent import durable
from trainmaster.job.agent.shortage import is_passing
from trainmaster.job.errors import EnvironmentException, TrainmasterError, from_wire
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.orphans import die_with
from trainmaster.shared.serialization import from_plain, to_plain

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def order(folder: Path, spec: EnvironmentSpec, variables: Mapping[str, str], refresh: bool = False) -> bytes:
    """What `python -m trainmaster.environments`, started by this process with `variables`, reads to build `spec`.

    Its standard input and not its command line, which everybody could read: a specification may hold passwords.
    """
    try:
        question = _first_question(spec, Tools(variables))
    except (TrainmasterError, OSError):
        # The builder meets it too, and says it where it belongs.
        question = None
    return marshal.dumps((str(folder), json.dumps(to_plain(spec)), os.getpid(), refresh, question))


def _first_question(spec: EnvironmentSpec, tools: Tools) -> lock.Question | None:
    if spec.conda_packages or spec.is_of_image:
        return None
    if any(file.exists() and not file.is_file() for file in config_files(tools.environ)):
        # Settings out of a pipe come once and when they like; they are the builder's, which can be ended.
        return None
    asked = _completed(canonical(spec), tools)
    return packages.first_question(packages.wanted(asked, python_for(asked), tools))


def main(folder: str, specification: str, parent: int, refresh: bool, ahead: Ahead | None) -> int:
    """Builds; on failure the last line of standard error is the error as JSON."""
    die_with(parent)
    log = Log(sys.stdout)
    try:
        with contextlib.redirect_stdout(log):
            build(Path(folder), from_plain(EnvironmentSpec, json.loads(specification)), refresh, ahead)
    except TrainmasterError as error:
        if not log.has(error.cause):
            print(error.message, flush=True)
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return os.EX_TEMPFAIL if _is_passing(error.__cause__) else 1
    return 0


def check(folder: str, specification: str, parent: int, ahead: Ahead | None) -> int:
    """Looks for packages that do not work together, without building; on failure as `main`."""
    die_with(parent)
    try:
        check_packages(Path(folder), from_plain(EnvironmentSpec, json.loads(specification)), ahead)
    except TrainmasterError as error:
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return 1
    return 0


def check_packages(folder: Path, spec: EnvironmentSpec, ahead: Ahead | None = None) -> None:
    """Refuses packages that can be had, but are known not to work together. Anything else is left to the build."""
    name, tools = digest(spec), Tools(dict(os.environ))
    spec = _completed(canonical(spec), tools)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder, name, patient=False):
            _check_lock(folder / f".building-{name}-{os.getpid()}", spec, tools, ahead)
    except OSError:
        # Another process builds it, or there is no room: the build tells.
        return
    finally:
        if ahead is not None:
            ahead.close()


def _check_lock(work: Path, spec: EnvironmentSpec, tools: Tools, ahead: Ahead | None) -> None:
    try:
        wanted = packages.wanted(spec, python_for(spec), tools)
        asked = ahead if ahead is not None and ahead.question == packages.first_question(wanted) else None
        found = packages.resolve(wanted, spec, work, tools, asked)
    except EnvironmentException:
        return
    try:
        packages.check_lock(found, spec, work, tools)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def build(folder: Path, spec: EnvironmentSpec, refresh: bool = False, ahead: Ahead | None = None) -> Path:
    """The real folder of the environment, built unless it is there; `refresh` builds it anew beside the old one.

    `ahead` is a uv that is looking for the lock already.
    """
    check_buildable(spec)
    name, spec = digest(spec), canonical(spec)
    tools = Tools(dict(os.environ))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before, begun = target(folder, name), time.time()
        with _only_builder(folder, name) as waited:
            found = ready(folder, name)
            if found is not None and not (refresh and found == before) and not facts.is_outdated(found, spec):
                return found
            if waited:
                _raise_failure_of_other(folder, name, begun, tools)
            return _build_next(folder, name, spec, tools, ahead)
    except OSError as error:
        raise _system_error(error) from error
    finally:
        if ahead is not None:
            ahead.close()


@contextlib.contextmanager
def _only_builder(folder: Path, name: str, patient: bool = True) -> Iterator[bool]:
    """Holds the lock of this environment; says whether it had to be waited for. Raises if it is not to be."""
    with open(folder / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            if not patient:
                raise
            print("waiting for another run that builds the same environment", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        yield waited


def _build_next(folder: Path, name: str, spec: EnvironmentSpec, tools: Tools, ahead: Ahead | None) -> Path:
    _remove_leftovers(folder, name)
    present = target(folder, name)
    if present is not None and not is_ready(present):
        print(f"environment {name} is not whole any more (files are missing or changed): built again", flush=True)
        if _forget_damaged(present, tools) and ahead is not None:
            # It may have looked at what is gone now.
            ahead.close()
            ahead = None
    numbers = [_number(path) for path in folder.glob(f"{name}.*")]
    final = folder / f"{name}.{max([0, *numbers]) + 1}"
    print(f"building environment {final.name}", flush=True)
    try:
        _build_into(folder / f".building-{name}-{os.getpid()}", final, spec, tools, ahead)
    except TrainmasterError as error:
        _keep_failure(folder, name, error, tools)
        raise
    _point(folder, name, final.name)
    _failure(folder, name).unlink(missing_ok=True)
    return final


def _forget_damaged(folder: Path, tools: Tools) -> bool:
    """A file that was written over in place may be the one in uv's cache, from where it would come again."""
    try:
        files = set(manifest.changed(folder))
    except (OSError, ValueError):
        return False
    names = [path.name.partition("-")[0] for path in lock.distributions(folder) if files & _files_of(path, folder)]
    if names:
        print(f"changed: {', '.join(sorted(files)[:5])}; uv fetches {', '.join(sorted(names))} anew", flush=True)
        tools.attempt(tools.uv_command(["cache", "clean", "--force", *names]))
    return bool(names)


def _files_of(distribution: Path, folder: Path) -> set[str]:
    """The files that a package installed, relative to the environment's folder."""
    base = distribution.parent.relative_to(folder)
    try:
        lines = (distribution / "RECORD").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {os.path.normpath(base / line.partition(",")[0]) for line in lines}


def _remove_leftovers(folder: Path, name: str) -> None:
    """What a killed builder left; the lock says that none lives."""
    for leftover in folder.glob(f".building-{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in folder.glob(f".pointing-{name}-*"):
        leftover.unlink(missing_ok=True)


def _build_into(temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools, ahead: Ahead | None) -> None:
    """The stages: a Python, the packages, what has to be compiled against them."""
    begun = time.monotonic()
    try:
        used = _for_a_python_that_fits(temporary, final, spec, tools, ahead)
        if spec.horovod:
            from trainmaster.environments import compiled

            compiled.install(used, temporary, tools)
        facts.write(temporary, spec, python_version(used), final.name, seconds=time.monotonic() - begun)
        manifest.record(temporary)
        # All of it at once: uv has linked thousands of files, some of which lie in its cache for less than a minute.
        durable.flush_file_system(temporary)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    print(f"environment {final.name} is ready after {time.monotonic() - begun:.1f} s", flush=True)


def _for_a_python_that_fits(
    temporary: Path, final: Path, spec: EnvironmentSpec, tools: Tools, ahead: Ahead | None
) -> EnvironmentSpec:
    """The first two stages; `spec` with another Python, if its own is not here or the packages need another."""
    try:
        _base_and_packages(temporary, final, spec, tools, ahead)
        return spec
    except EnvironmentException as error:
        from trainmaster.environments import other_python

        fit = other_python.that_fits(spec, error, tools)
    shutil.rmtree(temporary, ignore_errors=True)
    used = replace(spec, python_version=fit.python)
    _base_and_packages(temporary, final, used, tools, None, fit.constraints)
    facts.warn(temporary, f"Python {fit.python} is used: {fit.reason}")
    return used


def _base_and_packages(
    temporary: Path,
    final: Path,
    spec: EnvironmentSpec,
    tools: Tools,
    ahead: Ahead | None,
    constraints: tuple[str, ...] = (),
) -> None:
    work = temporary.with_name(f"{temporary.name}.resolving")
    try:
        if spec.conda_packages:
            # What conda brings decides what pip may take.
            asked = _completed(base.make(spec, temporary, final, tools), tools)
            present = (*lock.installed(temporary), *constraints)
            wanted = packages.wanted(asked, f"{temporary}/bin/python", tools, present)
            found = packages.resolve(wanted, asked, work, tools)
        else:
            found = _beside_one_another(temporary, _completed(spec, tools), work, tools, ahead, constraints)
        packages.check_lock(found, spec, work, tools)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    packages.install(found, temporary, tools)
    packages.check_installed(temporary, spec)


def _beside_one_another(
    temporary: Path,
    spec: EnvironmentSpec,
    work: Path,
    tools: Tools,
    ahead: Ahead | None,
    constraints: tuple[str, ...],
) -> packages.Resolved:
    """The lock, while the virtual environment is made."""
    wanted = packages.wanted(spec, python_for(spec), tools, constraints)
    question = packages.first_question(wanted)
    asking = ahead if ahead is not None and ahead.question == question else None
    if asking is None and question is not None:
        asking = Ahead(*question)
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


def _completed(spec: EnvironmentSpec, tools: Tools) -> EnvironmentSpec:
    """`spec` with the packages that Horovod and Open MPI need."""
    if not spec.horovod and not spec.open_mpi:
        return spec
    # Loaded only where it is needed: a small environment takes less than a second.
    from trainmaster.environments import compiled

    return compiled.completed(spec, tools.environ)


def _number(path: Path) -> int:
    number = path.name.rpartition(".")[2]
    return int(number) if number.isdigit() else 0


def _point(folder: Path, name: str, to: str) -> None:
    """The name leads to the new build from now on, in one step; those who use the old one keep it."""
    link = folder / f".pointing-{name}-{os.getpid()}"
    link.symlink_to(to)
    link.replace(folder / name)
    durable.flush_one(folder)


# What one builder learned, others that waited for it need not learn again.


def _failure(folder: Path, name: str) -> Path:
    return folder / f"{name}.failed"


def _keep_failure(folder: Path, name: str, error: TrainmasterError, tools: Tools) -> None:
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
    sources = [sorted(tools.settings.items()), sorted(source_variables(tools.environ).items())]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def _is_passing(error: BaseException | None) -> bool:
    """Whether building again in a while may well succeed. A full disk is for a person to see to."""
    return bool(is_passing(error)) and getattr(error, "errno", 0) not in _NO_ROOM


def _system_error(error: OSError) -> EnvironmentException:
    place = f": {error.filename}" if error.filename else ""
    hint = ""
    if error.errno in _NO_ROOM:
        hint = "Make room ('trainmaster env prune' removes environments that are not in use), then submit again."
    return EnvironmentException(f"the environment could not be built: {error.strerror or error}{place}", hint=hint)
