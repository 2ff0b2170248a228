"""The datasets of a run, as `Run.get_details` returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainmaster.sdk.datasets.kinds import dataset_from_definition
from trainmaster.sdk.datastores import Datastore
from trainmaster.shared.job_spec import DatasetDefinition, DatasetInput, DatasetOutput, DataSource
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.storage.dataset_plan import output_path

if TYPE_CHECKING:
    from trainmaster.sdk.datastores.datastore import WorkspaceSide


def with_datasets(details: dict[str, Any], workspace: WorkspaceSide) -> dict[str, Any]:
    """`details` with datasets instead of their descriptions in the job specification."""
    inputs = [from_plain(DatasetInput, each) for each in details["inputDatasets"]]
    outputs = [from_plain(DatasetOutput, each) for each in details["outputDatasets"]]
    return {
        **details,
        "inputDatasets": [_input(each, workspace) for each in inputs],
        "outputDatasets": [_output(each, workspace, details["runId"]) for each in outputs],
    }


def _input(given: DatasetInput, workspace: WorkspaceSide) -> dict[str, Any]:
    record = DatasetRecord(given.dataset_id, given.definition, given.dataset_name, given.dataset_version)
    return {
        "dataset": dataset_from_definition(given.definition, workspace, None, record),
        "consumptionDetails": {
            "type": "RunInput",
            "inputName": given.name,
            "mechanism": given.mode.capitalize(),
            "pathOnCompute": given.path_on_compute or None,
        },
    }


def _output(given: DatasetOutput, workspace: WorkspaceSide, run_id: str) -> dict[str, Any]:
    store = given.datastore or Datastore.get_default(workspace).name
    source = DataSource(output_path(given, run_id), store)
    definition = DatasetDefinition("tabular" if given.reader else "file", (source,), given.reader)
    return {
        "dataset": dataset_from_definition(definition, workspace),
        "outputType": "RunOutput",
        "outputDetails": {"outputName": given.name, "mode": given.mode, "registeredAs": given.register_as or None},
    }
