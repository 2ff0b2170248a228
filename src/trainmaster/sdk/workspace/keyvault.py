"""Keyvault: the secrets of a workspace. They are stored encrypted (`dispatcher/secrets.py`)."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.notices import warn

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


class KeyVaultContentType(Enum):
    """The content type of a secret, for programs that use it."""

    not_provided = "Not provided"


class Keyvault:
    """The secrets of a workspace; `run.get_secret(name)` reads them in a job.

    >>> ws.get_default_keyvault().set_secret("token", "s3cr3t")     # doctest: +SKIP
    """

    def __init__(self, workspace: Workspace, **kwargs: Any) -> None:
        self._workspace = workspace

    @property
    def workspace(self) -> Workspace:
        """The workspace it belongs to."""
        return self._workspace

    def set_secret(self, name: str, value: str, content_type: Any = KeyVaultContentType.not_provided) -> None:
        """Stores a secret. It replaces a secret with the same name."""
        self._put({name: {"value": value, "content_type": _content_type(content_type)}})

    def set_secrets(self, secrets_batch: Mapping[str, str]) -> None:
        """Stores several secrets, all or none."""
        if not isinstance(secrets_batch, Mapping):
            raise UserErrorException(f"secrets must be a dict of names and values, not {type(secrets_batch).__name__}")
        kind = _content_type(KeyVaultContentType.not_provided)
        self._put({name: {"value": value, "content_type": kind} for name, value in secrets_batch.items()})

    def get_secret(self, name: str) -> str | None:
        """The value of a secret; None, with a warning, if the name is unknown."""
        return self.get_secrets([name])[name]

    def get_secrets(self, secrets: Sequence[str]) -> dict[str, str | None]:
        """Name to value; None, with a warning, if a name is unknown."""
        found = self._get(secrets)
        for name in [name for name, secret in found.items() if secret is None]:
            warn(f"there is no secret '{name[:130]}' in this workspace")
        return {name: secret["value"] if secret else None for name, secret in found.items()}

    def get_secret_content_type(self, name: str) -> str | None:
        """The content type of a secret."""
        secret = self._get([name])[name]
        return secret["content_type"] if secret else None

    def delete_secret(self, name: str) -> None:
        """Deletes a secret, if it exists."""
        self.delete_secrets([name])

    def delete_secrets(self, secrets: Sequence[str]) -> None:
        """Deletes several secrets."""
        self._workspace.connection.call("secrets.delete", names=_names(secrets))

    def list_secrets(self) -> builtins.list[str]:
        """The names of all secrets."""
        return builtins.list(self._workspace.connection.call("secrets.list"))

    def _put(self, secrets: Mapping[Any, Mapping[str, Any]]) -> None:
        for name, secret in secrets.items():
            if not isinstance(name, str) or not isinstance(secret["value"], str):
                # Checked here, because every key becomes a string in JSON.
                raise UserErrorException(f"secret {str(name)[:60]!r}: its name and its value must be strings")
        self._workspace.connection.call("secrets.put", secrets=secrets)

    def _get(self, names: Sequence[str]) -> dict[str, dict[str, str] | None]:
        found: dict[str, dict[str, str] | None] = self._workspace.connection.call("secrets.get", names=_names(names))
        return found


def _names(names: Any) -> builtins.list[str]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(each, str) for each in names):
        raise UserErrorException(f"names of secrets must be a list of strings, not {str(names)[:60]!r}")
    return builtins.list(names)


def _content_type(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
