"""Data of a job description: which entries are possible, and the objects that estimators take as inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import check_name, compute_path, store_path
from trainmaster.sdk.estimators.data import MODEL_LOCATION
from trainmaster.sdk.job_files.description import Dataset, JobDescription, read_input
from trainmaster.shared.job_spec import Binding, DataBinding, DatasetOutput

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_OUTPUT_PATH = "dataset/{run-id}/{output-name}"


@dataclass(frozen=True)
class Bound:
    """Data that already has the form of a job specification."""

    binding: Binding

    def to_binding(self) -> Binding:
        """The binding."""
        return self.binding


def check_entry(name: str, entry: Any) -> Any:
    """`entry` with its paths normalised. Refuses names and paths that no job can have."""
    if isinstance(entry, Dataset):
        if not entry.name and not entry.id:
            raise UserErrorException(f"input {name!r} names no dataset", hint="Write the name of a dataset, or its id.")
        return replace(entry, path_on_compute=compute_path(entry.path_on_compute))
    if isinstance(entry, DatasetOutput):
        # The path may have {run-id} and {output-name}, and the datastore may be the default one.
        return replace(entry, path=store_path(entry.path) or _OUTPUT_PATH, source=compute_path(entry.source))
    check_name(name, "data reference")
    if not entry.datastore:
        raise UserErrorException(f"input {name!r} names no datastore", hint="Write DATASTORE/PATH.")
    return replace(entry, path=store_path(entry.path), path_on_compute=compute_path(entry.path_on_compute))


def inputs_of(job: JobDescription, open_workspace: Callable[[], Workspace]) -> Iterator[Any]:
    """What an estimator takes as inputs."""
    yield from map(Bound, job.inputs)
    yield from map(Bound, job.outputs)
    for name, dataset in job.datasets.items():
        yield _dataset(name, dataset, open_workspace())
    if job.resume_from:
        yield Bound(resume_binding(job.resume_from))


def resume_binding(text: str) -> DataBinding:
    """The folder with checkpoints, as an input."""
    binding: DataBinding = check_entry(MODEL_LOCATION, read_input(MODEL_LOCATION, text))
    return binding


def _dataset(name: str, dataset: Dataset, workspace: Workspace) -> Any:
    from trainmaster.sdk.datasets.abstract import AbstractDataset
    from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig

    if dataset.id:
        found = AbstractDataset.get_by_id(workspace, dataset.id)
    else:
        found = AbstractDataset.get_by_name(workspace, dataset.name, dataset.version or "latest")
    return DatasetConsumptionConfig(name, found, dataset.mode, dataset.path_on_compute or None)
