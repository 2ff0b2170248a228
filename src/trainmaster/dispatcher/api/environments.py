"""Operations on environments: definitions that are registered by name and version, and their builds."""

from __future__ import annotations

import builtins
import time
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.services import Services
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.records import EnvironmentRecord
from trainmaster.shared.serialization import from_plain

_LONGEST_NAME = 255


class EnvironmentOperations:
    """Operations on environments."""

    def __init__(self, context: Context, services: Services) -> None:
        self._context = context
        self._services = services
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

    @operation("environments.in_use")
    def find_users(self) -> dict[str, builtins.list[str]]:
        """The folder of each build that is in use, and the runs and services that use it."""
        return environments.find_users(self._context, self._services.environments_in_use())

    @operation("environments.remove")
    async def remove(self, names: builtins.list[str]) -> builtins.list[str]:
        """Remove builds that are not in use, and return the names of those that are removed."""
        return await environments.remove(self._context, self._services.environments_in_use(), names)
