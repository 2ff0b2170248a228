"""Registering a model from this program: its contents are kept first, then the workspace gives it a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.job.script.registered_model import DatasetReferences
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.snapshots.model_sources import Sources

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_ATTEMPTS = 3


def register_sources(
    workspace: Workspace, sources: Sources, description: Mapping[str, Any], references: DatasetReferences
) -> ModelRecord:
    """Keeps `sources` as the next version of the model that `describe_model` described; returns its record."""
    for _ in range(_ATTEMPTS):
        kept = workspace.backend.contents.keep_model(sources.entry, sources.files)
        model = {
            **description,
            "manifest": kept.digest,
            "entry": sources.entry,
            "file_count": len(kept.manifest.files),
            "byte_count": kept.manifest.byte_count,
        }
        answer = workspace.connection.call("models.register", model=model, datasets=references.to_plain())
        # None: another model with the same contents was just deleted, and the contents with it.
        if answer is not None:
            return from_plain(ModelRecord, answer)
    raise WebserviceException(
        f"the contents of model '{description['name']}' keep being removed while it is registered"
    )
