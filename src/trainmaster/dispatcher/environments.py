"""Environments in the dispatcher: found or built for runs and services, and removed when they are not in use."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.processes import run_module
from trainmaster.environments import build as builder
from trainmaster.environments import build_record, cleanup, companions, prefix
from trainmaster.environments.accelerator import on_this_machine
from trainmaster.environments.lock import LOCK_NAME
from trainmaster.environments.prefix import Prefix
from trainmaster.environments.sources import is_source_variable
from trainmaster.job.agent import durable
from trainmaster.job.errors import EnvironmentException, TrainmasterError, UserErrorException
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec, load_spec
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import BuildReport

_NOTE = "environment.json"
_NAME = re.compile(r"[0-9a-f]{4,32}(\.\d+)?")
# Find, build, find again; and once more if the build was removed in between.
_ATTEMPTS = 4
_CHECK_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_LAST_BYTES = 4096
# What our builder and uv print about work that takes long.
_PROGRESS = re.compile(r"compil(?:ing|ed) |waiting for another |\s*(?:Downloading|Building) \S")


async def find(
    spec: EnvironmentSpec, workspace: WorkspaceFolder, path: str, shared: str, outdated: bool = False
) -> Prefix | None:
    """The environment, if it is ready. A built environment is checked in a thread.

    With `outdated`, accept a build whose Python is a substitute for one that this machine has by now.
    """
    if spec.user_managed:
        return prefix.find(spec, workspace, path)
    found = await asyncio.to_thread(prefix.find, spec, workspace, path, shared)
    if found is None or outdated or not found.folder:
        return found
    return None if await asyncio.to_thread(build_record.is_outdated, Path(found.folder), spec) else found


async def build(
    spec: EnvironmentSpec, place: Path, log: Path, variables: Mapping[str, str], refresh: bool = False
) -> None:
    """Build an environment in `place`, in a separate process that prints to `log`."""
    order = await asyncio.to_thread(builder.order, place, spec, variables, refresh)
    await run_module(["trainmaster.environments"], log, variables, order)


async def find_or_build(
    spec: EnvironmentSpec,
    context: Context,
    user: RunFolder,
    log: Path,
    *,
    path: str,
    inherited: Mapping[str, str],
    sources: Mapping[str, str] | None,
    say: Callable[[str], None],
) -> Prefix:
    """The environment for the run or service with the folder `user`; built if it does not exist, with the log `log`.

    `path` is the PATH where the user's own Python is found. `sources` are the submitter's variables for package
    sources, None if they are not known any more.
    """
    shared = (os.environ if sources is None else sources).get("TRAINMASTER_ENVIRONMENTS", "")
    for attempt in range(_ATTEMPTS):
        found = await find(spec, context.folder, path, shared, outdated=attempt > 0)
        if found is None:
            await build_and_tell(spec, context, log, variables(sources, inherited), say)
        elif note_use(user, found):
            return found
    raise EnvironmentException(
        f"environment {prefix.digest(spec)} was built, but is not complete",
        hint="Another program seems to remove files from the folder of environments.",
    )


async def build_and_tell(
    spec: EnvironmentSpec, context: Context, log: Path, variables: Mapping[str, str], say: Callable[[str], None]
) -> None:
    """Builds an environment of the workspace and says how far that is. `log` is the run's own.

    Runs that wait for the same environment say how far its builder is, and have it in their own logs.
    """
    name = prefix.digest(spec)
    say(f"building environment {name}")
    building = asyncio.ensure_future(build(spec, context.folder.environments, log, variables))
    told = ""
    try:
        while not (await asyncio.wait((building,), timeout=_LOOK_SECONDS))[0]:
            shown = context.builds.setdefault(name, log)
            progress = await asyncio.to_thread(progress_in, shown)
            if progress and progress != told:
                told = progress
                say(progress)
                if shown != log:
                    await asyncio.to_thread(_add_line, log, progress)
        await building
    except asyncio.CancelledError:
        building.cancel()
        await asyncio.wait((building,))
        raise
    finally:
        if context.builds.get(name) == log:
            del context.builds[name]


def progress_in(log: Path) -> str:
    """The last line of a build's log that shows its progress, or an empty text."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    found = next((line for line in reversed(lines) if _PROGRESS.match(line)), "")
    return found.partition(" (log: ")[0].strip()


def _add_line(log: Path, line: str) -> None:
    with contextlib.suppress(OSError), open(log, "a") as file:
        file.write(f"{line}\n")


async def check(
    spec: EnvironmentSpec, context: Context, sources: Mapping[str, str] | None, inherited: Mapping[str, str]
) -> None:
    """Refuse an environment whose packages exist but do not work together, before a run is queued.

    This is done only where such packages are named, because uv needs seconds for the lock; the build needs the answer
    anyway. What is not known in time is left to the build.
    """
    place, name = context.folder.environments, prefix.digest(spec)
    if spec.user_managed or spec.is_of_image or spec.conda_packages or spec.lock or not companions.is_named(spec):
        return
    if await asyncio.to_thread(prefix.find_ready, place, name) is not None:
        return
    wanted = variables(sources, inherited)
    order = await asyncio.to_thread(builder.order, place, spec, wanted)
    try:
        with context.activity.working():
            async with asyncio.timeout(_CHECK_SECONDS):
                await run_module(["trainmaster.environments", "check"], cleanup.log_of(place, name), wanted, order)
    except EnvironmentException:
        raise
    except (TrainmasterError, OSError):
        # The check was killed, could not be started, or an index did not answer in time.
        return


def variables(sources: Mapping[str, str] | None, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a build: the submitter's package sources, or those of the dispatcher if they are not known."""
    own = {name: value for name, value in os.environ.items() if sources is None or not is_source_variable(name)}
    return {**own, **(inherited or {}), **(sources or {})}


def note_use(run: RunFolder, found: Prefix) -> bool:
    """Note in the run's folder its environment and the lock of it. False if the environment was removed meanwhile."""
    if not found.folder:
        return True
    folder = Path(found.folder)
    run.path.mkdir(parents=True, exist_ok=True)
    durable.write_unflushed(run.path / _NOTE, json.dumps({"version": 1, "folder": found.folder}).encode())
    build_record.mark_used(folder)
    # An environment without a lock was not made by Trainmaster, but can be used.
    with contextlib.suppress(FileNotFoundError):
        (run.path / LOCK_NAME).write_bytes((folder / LOCK_NAME).read_bytes())
    return os.access(found.python, os.X_OK)


def environment_of(run: RunFolder) -> str:
    """The real folder of a run's environment; empty if it has none yet."""
    return str((read_json(run.path / _NOTE) or {}).get("folder", ""))


def find_users(context: Context, services: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Folder to the runs and services that need it: the one a run began with, and the newest of what it asks for.

    `services` is the folder of each environment that services use, and their names.
    """
    found: dict[str, list[str]] = {}
    for record in context.store.runs.list_active():
        if not record.spec:
            continue
        spec = load_spec(record.spec).environment
        newest = None if spec.user_managed else prefix.target(context.folder.environments, prefix.digest(spec))
        for folder in {environment_of(context.folder.run(record.id)), str(newest or "")} - {""}:
            found.setdefault(folder, []).append(record.id)
    for folder, users in services.items():
        found.setdefault(folder, []).extend(users)
    return found


async def on_request(
    context: Context, spec: EnvironmentSpec, sources: Mapping[str, str] | None, refresh: bool
) -> dict[str, Any]:
    """Build an environment for a client, if it does not exist. The log is beside the build."""
    if spec.user_managed:
        raise EnvironmentException("an environment that the user manages is not built")
    spec = on_this_machine(spec)
    place, name = context.folder.environments, prefix.digest(spec)
    with context.activity.working():
        ready = await asyncio.to_thread(prefix.find_ready, place, name)
        if refresh or ready is None or await asyncio.to_thread(build_record.is_outdated, ready, spec):
            log = cleanup.log_of(place, name)
            await asyncio.to_thread(log.unlink, missing_ok=True)
            await build(spec, place, log, variables(sources), refresh)
    folder = prefix.target(place, name)
    return {"digest": name, "folder": str(folder) if folder else ""}


def request_log(context: Context, spec: EnvironmentSpec) -> Path:
    """The log of a build on request."""
    return cleanup.log_of(context.folder.environments, prefix.digest(on_this_machine(spec)))


def list_builds(context: Context, users: Mapping[str, Sequence[str]]) -> list[BuildReport]:
    """All builds, the last used first. `users` are those of each folder."""
    return [_report(each, users) for each in cleanup.list_builds(context.folder.environments)]


def choose_removable(
    context: Context, users: Mapping[str, Sequence[str]], older_than_days: float | None, keep_bytes: int | None
) -> list[BuildReport]:
    """The builds that are not in use and may go."""
    builds = cleanup.list_builds(context.folder.environments)
    chosen = cleanup.choose_removable(builds, users, time.time(), older_than_days, keep_bytes)
    return [_report(each, users) for each in chosen]


def find_build(context: Context, users: Mapping[str, Sequence[str]], which: str) -> tuple[BuildReport, str] | None:
    """The build whose name begins with `which`, and its lock; None if there is none."""
    if not _NAME.fullmatch(which):
        return None
    builds = [each for each in cleanup.list_builds(context.folder.environments) if each.name.startswith(which)]
    if not builds:
        return None
    if len({each.digest for each in builds}) > 1:
        raise UserErrorException(f"{len(builds)} environments begin with '{which}'", hint="Type more of the name.")
    chosen = next((each for each in builds if each.current), builds[0])
    return _report(chosen, users), _read_text(chosen.path / LOCK_NAME)


def find_build_of_run(
    context: Context, users: Mapping[str, Sequence[str]], run_id: str
) -> tuple[BuildReport | None, str]:
    """The build that a run used, if it still exists, and its lock."""
    run = context.folder.run(run_id)
    lock = _read_text(run.path / LOCK_NAME)
    if not lock:
        raise UserErrorException(
            f"no environment was built for run {run_id}",
            hint="It uses a Python that you manage, or its environment is not built yet.",
        )
    folder = environment_of(run)
    found = cleanup.describe_build(Path(folder)) if folder and os.path.isdir(folder) else None
    return (_report(found, users) if found else None), lock


def _report(build: cleanup.Built, users: Mapping[str, Sequence[str]]) -> BuildReport:
    facts = build.facts
    return BuildReport(
        name=build.name,
        digest=build.digest,
        current=build.current,
        python=facts.python if facts else "",
        packages=tuple(facts.specification.pip_packages) if facts else (),
        bytes=build.bytes,
        own_bytes=build.own_bytes,
        built_at=facts.built_at if facts else 0.0,
        last_used_at=build.last_used,
        users=tuple(users.get(str(build.path), ())),
        path=str(build.path),
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


async def remove(context: Context, services: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[str]:
    """Remove builds (`<digest>.<n>`) that are not in use, and return their names.

    The names go at once, while nothing else of the dispatcher runs; the files after that.
    """
    needed = find_users(context, services)
    place = context.folder.environments
    doomed = [name for name in names if str(place / name) not in needed]
    gone = [(name, cleanup.hide(place, name)) for name in doomed]
    await asyncio.to_thread(cleanup.delete, place)
    return [name for name, hidden in gone if hidden is not None]
