"""A model of files of a run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.sdk.models.model import Model
from trainmaster.sdk.models.references import References
from trainmaster.sdk.models.registering import draft, register
from trainmaster.snapshots.model_sources import files_of_run

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run


def register_of_run(run: Run, model_name: str, model_path: str | os.PathLike[str] | None, **said: Any) -> Model:
    """Registers a file or folder of a run; `said` goes to `registering.draft`."""
    references = References()
    record = replace(draft(references, model_name, **said), run_id=run.id)
    path = os.fspath(model_name if model_path is None else model_path)
    workspace = run.experiment.workspace
    return Model(workspace, _record=register(workspace, files_of_run(run._folder, path), record, references))
