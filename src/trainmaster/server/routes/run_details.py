"""What a page about one run shows and does beyond the run itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.environments.lock import Pin, pins
from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Operation, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.permissions import Permission
from trainmaster.shared.records import BuildReport, RunRecord
from trainmaster.shared.run_ids import make_run_id
from trainmaster.shared.serialization import from_plain

_RUN = f"{WORKSPACE}/runs/{{run_id}}"
_TAG = "runs"


async def rerun_run(
    call: Call,
    run_id: str,
    arguments: list[str] | None = None,
    command: list[str] | None = None,
    display_name: str | None = None,
    tags: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
    fresh_environment: bool = False,
    resume: bool = False,
) -> Any:
    """Submit a run again, with other arguments if they are given. Without any it is a retry.

    It has the same code and exactly the same packages, unless `fresh_environment` resolves them anew. With `resume` it
    continues in the working folder of the run, which must have ended.
    """
    origin = await call.ask("runs.get", run_id=run_id)
    new_id = make_run_id(origin["experiment"])
    return await call.ask(
        "runs.rerun",
        run_id=run_id,
        new_id=new_id,
        arguments=arguments,
        command=command,
        display_name=display_name,
        tags=tags,
        settings=settings,
        fresh_environment=fresh_environment,
        resume=resume,
    )


@dataclass(frozen=True)
class RunEnvironment:
    """The environment of a run: as it was asked for, and as it was built."""

    name: str
    """As it is registered; empty if it is not."""
    version: str
    definition: Mapping[str, Any]
    lock: str | None
    """The packages that were installed; null if nothing was built for the run."""
    packages: tuple[Pin, ...]
    """Those of the lock."""


async def get_run_environment(call: Call, run_id: str) -> RunEnvironment:
    """The environment of a run."""
    run = await call.ask("runs.get", run_id=run_id)
    lock = await call.ask("runs.environment_lock", run_id=run_id)
    spec = json.loads(run["spec"]) if run["spec"] else {}
    return RunEnvironment(
        spec.get("environment_name", ""),
        spec.get("environment_version", ""),
        spec.get("environment", {}),
        lock,
        tuple(pins(lock or "")),
    )


@dataclass(frozen=True)
class EnvironmentBuild:
    """One build of an environment."""

    build: BuildReport
    lock: str
    packages: tuple[Pin, ...]


async def get_environment_build(call: Call, name: str) -> EnvironmentBuild:
    """A build by its name, or the beginning of it."""
    found = await call.ask("environments.find_build", name=name)
    if found is None:
        raise refuse(404, f"there is no build '{name[:60]}' of an environment in this workspace")
    build = from_plain(BuildReport, found["build"])
    return EnvironmentBuild(build, found["lock"], tuple(pins(found["lock"])))


ROUTES: Sequence[Route] = (
    Route(
        "GET",
        f"{_RUN}/environment",
        get_run_environment,
        Permission.READ,
        "The environment of a run, and the packages that were installed",
        _TAG,
    ),
    Route(
        "GET",
        f"{WORKSPACE}/environment-builds/{{name}}",
        get_environment_build,
        Permission.READ,
        "One build, with its packages",
        "environments",
    ),
    Route(
        "POST",
        f"{_RUN}/rerun",
        rerun_run,
        Permission.CONTRIBUTE,
        "Submit a run again, as it was or with other arguments",
        _TAG,
        answer=RunRecord,
        largest_body=16 * MEGABYTE,
    ),
    Route(
        "GET",
        f"{_RUN}/explanation",
        Operation("runs.explain"),
        Permission.READ,
        "What a run waits for, or why it failed",
        _TAG,
    ),
    Route(
        "GET",
        f"{_RUN}/differences/{{other}}",
        Operation("runs.differences"),
        Permission.READ,
        "What differs between two runs: arguments, settings, packages, metrics, code",
        _TAG,
    ),
    Route(
        "GET",
        f"{_RUN}/lineage",
        Operation("runs.lineage"),
        Permission.READ,
        "Where a run comes from, and what came of it",
        _TAG,
    ),
    Route(
        "GET",
        f"{WORKSPACE}/models/{{name}}/versions/{{version}}/lineage",
        Operation("models.lineage"),
        Permission.READ,
        "Where a model comes from, and what uses it",
        "models",
    ),
)
