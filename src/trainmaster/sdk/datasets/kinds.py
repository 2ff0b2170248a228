"""The classes of datasets by their kind: `file` and `tabular` register themselves here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import DatasetDefinition
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.datastores.datastore import Datastore, WorkspaceSide

_CLASSES: dict[str, type] = {}


def register_class(kind: str, dataset_class: type) -> None:
    """Makes `dataset_class` the class of all datasets of this kind."""
    _CLASSES[kind] = dataset_class


def dataset_from_definition(
    definition: DatasetDefinition,
    workspace: WorkspaceSide | None = None,
    stores: Mapping[str, Datastore] | None = None,
    record: DatasetRecord | None = None,
) -> Any:
    """A dataset of the class that `definition` asks for."""
    return _CLASSES[definition.kind](definition, workspace, stores, record)


def dataset_from_record(workspace: WorkspaceSide, plain: Any) -> Any:
    """The dataset in an answer of the workspace."""
    record = from_plain(DatasetRecord, plain)
    return dataset_from_definition(record.definition, workspace, None, record)


def get_dataset(workspace: WorkspaceSide, name: str, version: str | int = "latest") -> Any:
    """The registered dataset of this name, in its newest version or the given one."""
    if not isinstance(name, str):
        raise UserErrorException(f"the name of a dataset must be text, not {name!r}")
    return dataset_from_record(workspace, workspace.connection.call("datasets.get", name=name, version=str(version)))
