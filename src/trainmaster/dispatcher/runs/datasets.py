"""The datasets of a run: its inputs are kept when it is submitted, its outputs are registered when it has completed."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from trainmaster.dispatcher.store import Store
from trainmaster.shared.job_spec import DatasetDefinition, DatasetOutput, DataSource, JobSpec
from trainmaster.shared.records import DatasetRecord
from trainmaster.storage.dataset_plan import output_path


def save_inputs(spec: JobSpec, store: Store) -> None:
    """Stores the input datasets of a run, so that they can be found by their ids later."""
    for given in spec.dataset_inputs:
        if not given.dataset_name:
            store.datasets.save(DatasetRecord(given.dataset_id, given.definition, created_at=time.time()))


def register_outputs(run_id: str, spec: JobSpec, store: Store) -> None:
    """Registers what a completed run wrote. May be repeated: an output of a run has one id for ever."""
    for output in spec.dataset_outputs:
        if output.register_as:
            dataset_id = output_id(run_id, output.name)
            record = DatasetRecord(
                dataset_id,
                _definition(output, run_id, store),
                output.register_as,
                None,
                output.description,
                output.tags,
            )
            store.datasets.register(replace(record, created_at=time.time()))


def output_id(run_id: str, name: str) -> str:
    """The id of the dataset that an output of a run becomes."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"trainmaster:{run_id}/{name}"))


def _definition(output: DatasetOutput, run_id: str, store: Store) -> DatasetDefinition:
    name = output.datastore or next(each.name for each in store.datastores.list_all() if each.is_default)
    source = DataSource(output_path(output, run_id), name)
    return DatasetDefinition("tabular" if output.reader else "file", (source,), output.reader)
