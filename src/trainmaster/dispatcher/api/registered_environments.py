"""Registered environments, as the dispatcher knows them: definitions by name and version. Builds are elsewhere."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import EnvironmentRecord


class RegisteredEnvironments:
    """The operations on registered environments."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def operations(self) -> dict[str, Callable[..., Any]]:
        """By their names."""
        return {
            "environments.put": self.put,
            "environments.get": self.get,
            "environments.list": self.list,
            "environments.label": self.label,
        }

    def put(self, name: str, definition: Mapping[str, Any]) -> EnvironmentRecord:
        """Registers an environment; what the newest version says already is no new one."""
        _check_environment(name, definition)
        return self._store.environments.register(name, definition, at=time.time())

    def get(self, name: str, version: int | None = None, label: str | None = None) -> EnvironmentRecord:
        """The environment of this version or label; of neither: its newest version."""
        found = self._store.environments.get(name, version, label)
        if found is None:
            wanted = f" of version {version}" if version is not None else f" with label {label!r}" if label else ""
            known = ", ".join(record.name for record in self._store.environments.list_newest())
            raise UserErrorException(
                f"there is no environment '{str(name)[:300]}'{wanted} in this workspace",
                hint=f"Known: {known or 'none'}. Register one with environment.register(workspace).",
            )
        return found

    def list(self) -> list[EnvironmentRecord]:
        """The newest version of each."""
        return self._store.environments.list_newest()

    def label(self, name: str, version: int, labels: builtins.list[str]) -> EnvironmentRecord:
        """Gives labels to a version, and takes them from the others of its name."""
        self.get(name, version)
        return self._store.environments.add_labels(name, version, labels)


def _check_environment(name: Any, definition: Any) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > 255:
        raise UserErrorException(
            f"'{str(name)[:60]}' cannot be the name of an environment", hint="Use 1 to 255 characters."
        )
    if not isinstance(definition, Mapping):
        raise UserErrorException(f"the definition of environment '{name}' must be an object")
