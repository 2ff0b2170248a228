"""Before and after the job: its environment, its data."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.datastores.staging import DataPlan, plan_data, read_plan, write_plan
from trainmaster.environments import prefix
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import Prefix
from trainmaster.environments.sources import is_source_variable
from trainmaster.errors import AzureMLException, from_wire
from trainmaster.folders import RunFolder
from trainmaster.job import JobSpec
from trainmaster.plain import to_plain
from trainmaster.records import RunRecord

if TYPE_CHECKING:
    from trainmaster.dispatch.yard import Yard


@dataclass(frozen=True)
class Preparation:
    """What a run needs besides nodes."""

    prefix: Prefix
    kit: str
    data: DataPlan | None


async def prepare(
    record: RunRecord, spec: JobSpec, yard: Yard, sources: Mapping[str, str] | None, say: Callable[[str], None]
) -> Preparation:
    """The environment (built if it is not there) and the data of a run."""
    path = spec.environment_variables.get("PATH") or spec.inherited_variables.get("PATH", "")
    folder = yard.folder.run(record.id)
    ready = prefix.find(spec.environment, yard.folder, path)
    if ready is None:
        say(f"building environment {prefix.digest(spec.environment)}")
        await _build(spec, yard, folder, sources)
        ready = prefix.find(spec.environment, yard.folder, path)
        assert ready is not None
    data = _plan_data(spec, yard, folder)
    if data is not None and data.before:
        say("bringing in the data")
        await _stage(folder, "before", folder.logs / "65_job_prep-0.txt")
    return Preparation(ready, str(ensure_kit(yard.folder.path)), data)


async def after_job(record: RunRecord, spec: JobSpec, yard: Yard) -> str:
    """Takes data to where it belongs after the job; returns what went wrong, if anything did."""
    if not spec.data:
        return ""
    folder = yard.folder.run(record.id)
    try:
        if read_plan(folder.data_plan).after:
            await _stage(folder, "after", folder.logs / "75_job_post-0.txt")
    except AzureMLException as error:
        return error.message
    return ""


def _plan_data(spec: JobSpec, yard: Yard, folder: RunFolder) -> DataPlan | None:
    if not spec.data:
        return None
    stores = {store.name: store for store in yard.store.list_datastores()}
    plan = plan_data(spec.data, stores, folder.path, folder.code)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_plan(plan, folder.data_plan)
    return plan


async def _build(spec: JobSpec, yard: Yard, folder: RunFolder, sources: Mapping[str, str] | None) -> None:
    text = json.dumps(to_plain(spec.environment))
    command = ["trainmaster.environments.build", str(yard.folder.environments), text, str(os.getpid())]
    await _module(command, folder.logs / "20_image_build_log.txt", _build_variables(spec, sources))


def _build_variables(spec: JobSpec, sources: Mapping[str, str] | None) -> dict[str, str]:
    """The submitter's package sources; those of the dispatcher only for a run that an earlier dispatcher took."""
    own = {name: value for name, value in os.environ.items() if sources is None or not is_source_variable(name)}
    return {**own, **spec.inherited_variables, **(sources or {})}


async def _stage(folder: RunFolder, when: str, log: Path) -> None:
    await _module(
        ["trainmaster.datastores.stage", str(folder.data_plan), when, str(os.getpid())], log, dict(os.environ)
    )


async def _module(command: list[str], log: Path, variables: Mapping[str, str]) -> None:
    """Runs one of our own modules as a process that prints to `log`; its last line of standard error is its error."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if process.returncode:
        raise _error_of(command[0], process.returncode, errors.decode(errors="replace"))


def _error_of(module: str, code: int, text: str) -> AzureMLException:
    lines = text.strip().splitlines()
    with contextlib.suppress(ValueError, IndexError):
        data = json.loads(lines[-1])
        if isinstance(data, dict) and "headline" in data:
            return from_wire(data)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return AzureMLException(f"{module} {how}", cause="\n".join(lines[-10:]))
