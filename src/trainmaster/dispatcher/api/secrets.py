"""Operations on secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.shared.records import TERMINAL


class SecretOperations:
    """Operations on the secrets of a workspace, and for jobs that use them."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._folder = context.folder
        self._secrets = context.secrets

    @operation("secrets.put")
    def put(self, secrets: Mapping[str, Mapping[str, str]]) -> None:
        """Keep `{name: {"value", "content_type"}}`, all or none."""
        self._secrets.put(secrets)

    @operation("secrets.get")
    def get(self, names: Sequence[str]) -> dict[str, dict[str, str] | None]:
        """`{name: {"value", "content_type"}}`, with null for an unknown name."""
        return self._secrets.get(names)

    @operation("secrets.delete")
    def delete(self, names: Sequence[str]) -> None:
        """Delete secrets; unknown ones are ignored."""
        self._secrets.delete(names)

    @operation("secrets.list")
    def list_names(self) -> list[str]:
        """The names of all secrets."""
        return self._secrets.names()

    @operation("secrets.fetch")
    def fetch(self, run_id: str, names: list[str]) -> dict[str, str | None]:
        """The values of secrets, for a job that is running."""
        record = require_run(self._store, run_id)
        if record.status in TERMINAL or not record.spec:
            raise UserErrorException(f"run {run_id} has no running job: it gets no secrets")
        return self._secrets.fetch(self._folder.run(run_id), names)

    @operation("secrets.masks")
    def list_masks(self, run_id: str) -> list[str]:
        """The texts to hide when logs of this run are shown."""
        record = require_run(self._store, run_id)
        try:
            return self._secrets.masks(self._folder.run(run_id))
        except WorkspaceException:
            # The log files of a finished run are masked already, so a key that was lost since does no harm.
            if record.status in TERMINAL:
                return []
            raise
