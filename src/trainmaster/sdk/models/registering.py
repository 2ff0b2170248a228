"""Registering a model from this program: its contents are kept first, then the workspace gives it a version."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.job.script.model_rules import check_name, checked_framework, checked_labels
from trainmaster.job.script.resource_configuration import as_plain
from trainmaster.sdk.experiment import user
from trainmaster.sdk.models.references import References
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.snapshots.model_contents import Contents
from trainmaster.snapshots.model_sources import Sources

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_ATTEMPTS = 3


def draft(
    references: References,
    name: str,
    *,
    tags: Any = None,
    properties: Any = None,
    description: Any = None,
    datasets: Any = None,
    framework: Any = None,
    framework_version: Any = None,
    sample_input: Any = None,
    sample_output: Any = None,
    resources: Any = None,
) -> ModelRecord:
    """All that is said of a model besides its files; checked."""
    framework, framework_version = checked_framework(framework, framework_version)
    return ModelRecord(
        name=check_name(name),
        key=uuid.uuid4().hex,
        manifest="",
        entry="",
        description=str(description or ""),
        tags=checked_labels(tags, "tags"),
        properties=checked_labels(properties, "properties"),
        framework=framework,
        framework_version=framework_version,
        datasets=references.uses(datasets),
        sample_input=references.sample(sample_input),
        sample_output=references.sample(sample_output),
        resources=as_plain(resources),
        created_by=user(),
    )


def register(workspace: Workspace, sources: Sources, said: ModelRecord, references: References) -> ModelRecord:
    """The model as it is registered."""
    contents = Contents(WorkspaceFolder(workspace.path).models)
    for _ in range(_ATTEMPTS):
        kept = contents.keep(sources.entry, sources.files)
        record = replace(
            said,
            manifest=kept.digest,
            entry=sources.entry,
            file_count=len(kept.manifest.files),
            byte_count=kept.manifest.byte_count,
        )
        answer = workspace._call("models.register", model=to_plain(record), datasets=references.plain())
        # None: another model with the same contents was deleted just then, and they with it.
        if answer is not None:
            return from_plain(ModelRecord, answer)
    raise WebserviceException(f"the contents of model '{said.name}' keep being removed while it is registered")
