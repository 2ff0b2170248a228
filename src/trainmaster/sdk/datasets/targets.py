"""Paths in datastores, in all forms that v1 accepts."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.datastores import DataPath, DataReference, Datastore
from trainmaster.shared.job_spec import DataSource


def store_and_path(given: Any, parameter: str) -> tuple[Datastore, str]:
    """The datastore and the path in it that `given` names; an error for anything else."""
    found = place_of(given)
    if found is None:
        raise UserErrorException(
            f"{parameter} must be (datastore, 'path'), a DataPath or a datastore, not {type(given).__name__}"
        )
    return found


def place_of(given: Any) -> tuple[Datastore, str] | None:
    """The datastore and the path in it that `given` names; None for anything else."""
    if isinstance(given, Datastore):
        return given, ""
    if isinstance(given, (DataReference, DataPath)) and given.datastore is not None:
        return given.datastore, given.path_on_datastore
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Datastore):
        return given[0], str(given[1])
    return None


def source_of(store: Datastore, path: str) -> DataSource:
    """The files at `path`, wildcards included, as a source of a dataset."""
    from trainmaster.job.script.store_paths import store_path

    return DataSource(store_path(path), store.name)
