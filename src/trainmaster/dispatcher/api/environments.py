"""Operations on environments: definitions that are registered by name and version, and their builds."""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.long_work import LongWork, WorkNews
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.services import Services
from trainmaster.environments import cleanup
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.log_texts import LogPlace, read_last
from trainmaster.shared.records import BuildReport, EnvironmentRecord
from trainmaster.shared.serialization import from_plain

_LONGEST_NAME = 255
_LOG_LINES = 2000


class EnvironmentOperations:
    """Operations on environments."""

    def __init__(self, context: Context, services: Services, work: LongWork) -> None:
        self._context = context
        self._services = services
        self._work = work
        self._environments = context.store.environments

    @operation("environments.put")
    def put(self, name: str, definition: Mapping[str, Any]) -> EnvironmentRecord:
        """Register a definition as a new version, unless the newest version has the same definition."""
        if not name.strip() or len(name) > _LONGEST_NAME:
            raise UserErrorException(
                f"'{name[:60]}' cannot be the name of an environment", hint=f"Use 1 to {_LONGEST_NAME} characters."
            )
        return self._environments.register(name, definition, at=time.time())

    @operation("environments.get")
    def get(self, name: str, version: int | None = None, label: str | None = None) -> EnvironmentRecord:
        """The environment with this version or label; without either, its newest version."""
        found = self._environments.get(name, version, label)
        if found is None:
            wanted = f" of version {version}" if version is not None else f" with label {label!r}" if label else ""
            known = ", ".join(record.name for record in self._environments.list_newest())
            raise UserErrorException(
                f"there is no environment '{name[:300]}'{wanted} in this workspace",
                hint=f"Known: {known or 'none'}. Register one with environment.register(workspace).",
            )
        return found

    @operation("environments.list")
    def list(self) -> list[EnvironmentRecord]:
        """The newest version of each environment."""
        return self._environments.list_newest()

    @operation("environments.versions")
    def list_versions(self, name: str) -> builtins.list[EnvironmentRecord]:
        """All versions of an environment, the newest first."""
        return self._environments.list_versions(self.get(name).name)

    @operation("environments.label")
    def label(self, name: str, version: int, labels: builtins.list[str]) -> EnvironmentRecord:
        """Give labels to a version, and take them from the other versions of its name."""
        self.get(name, version)
        return self._environments.add_labels(name, version, labels)

    @operation("environments.build")
    async def build(
        self, spec: Mapping[str, Any], sources: Mapping[str, str] | None = None, refresh: bool = False
    ) -> dict[str, Any]:
        """Build an environment unless it is built already; answer when it is ready."""
        return await environments.on_request(self._context, from_plain(EnvironmentSpec, spec), sources, refresh)

    @operation("environments.follow_build")
    async def follow_build(
        self,
        key: str,
        spec: Mapping[str, Any],
        sources: Mapping[str, str] | None = None,
        refresh: bool = False,
        log: Mapping[str, Any] | None = None,
        seconds: float = 30.0,
    ) -> WorkNews:
        """Build as `build` does; answer when the log of the build has grown past `log`, or with the result.

        The same `key` is the same build, however often it is asked for.
        """
        wanted, place = from_plain(EnvironmentSpec, spec), from_plain(LogPlace, log or {})
        begin = partial(environments.on_request, self._context, wanted, sources, refresh)
        file = environments.request_log(self._context, wanted)
        if not self._work.knows(key):
            # What an earlier build wrote is not shown.
            file.unlink(missing_ok=True)
        return await self._work.follow(key, begin, file, place, seconds)

    @operation("environments.builds")
    async def builds(self) -> builtins.list[BuildReport]:
        """All builds in the workspace, the last used first."""
        return await asyncio.to_thread(environments.list_builds, self._context, self.find_users())

    @operation("environments.find_build")
    async def find_build(self, name: str) -> dict[str, Any] | None:
        """A build by its name or the beginning of it, with the text of its lock: `{"build", "lock"}`."""
        found = await asyncio.to_thread(environments.find_build, self._context, self.find_users(), name)
        return {"build": found[0], "lock": found[1]} if found else None

    @operation("environments.read_log")
    async def read_log(self, name: str) -> dict[str, str]:
        """The end of the log of a build: `{"text"}`. Empty for one made for a run, which has it in its own logs."""
        found = await asyncio.to_thread(environments.find_build, self._context, {}, name)
        if found is None:
            raise UserErrorException(f"there is no build '{name[:60]}' in this workspace")
        file = cleanup.log_of(self._context.folder.environments, found[0].digest)
        return {"text": (await asyncio.to_thread(read_last, file, _LOG_LINES)).text}

    @operation("environments.build_of_run")
    async def find_build_of_run(self, run_id: str) -> dict[str, Any]:
        """The build that a run used, null if it was removed, and its lock: `{"build", "lock"}`."""
        run = require_run(self._context.store, run_id)
        build, lock = await asyncio.to_thread(environments.find_build_of_run, self._context, self.find_users(), run.id)
        return {"build": build, "lock": lock}

    @operation("environments.prune")
    async def prune(
        self, older_than_days: float | None = None, keep_bytes: int | None = None, dry_run: bool = False
    ) -> builtins.list[BuildReport]:
        """Remove builds that a newer one replaced, and more with the limits; return those that are (or would be)."""
        users = self.find_users()
        chosen = await asyncio.to_thread(
            environments.choose_removable, self._context, users, older_than_days, keep_bytes
        )
        if dry_run:
            return chosen
        # Called even if nothing is to be removed: it also removes what killed builders left behind.
        removed = set(await self.remove([each.name for each in chosen]))
        return [each for each in chosen if each.name in removed]

    @operation("environments.in_use")
    def find_users(self) -> dict[str, builtins.list[str]]:
        """The folder of each build that is in use, and the runs and services that use it."""
        return environments.find_users(self._context, self._services.environments_in_use())

    @operation("environments.remove")
    async def remove(self, names: builtins.list[str]) -> builtins.list[str]:
        """Remove builds that are not in use, and return the names of those that are removed."""
        return await environments.remove(self._context, self._services.environments_in_use(), names)
