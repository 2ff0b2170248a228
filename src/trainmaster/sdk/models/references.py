"""The datasets that a model refers to: for what each was used, and samples of what goes in and comes out."""

from __future__ import annotations

from typing import Any

from trainmaster.job.script.model_rules import dataset_error
from trainmaster.job.script.registered_model import DatasetReferences
from trainmaster.sdk.datasets.abstract import AbstractDataset
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import to_plain


class References(DatasetReferences):
    """Datasets to be sent to the workspace, each once: outside of jobs they may have no name there yet."""

    def __init__(self) -> None:
        self._records: dict[str, DatasetRecord] = {}

    def find_id(self, dataset: object) -> str:
        """The id of a dataset; empty for None."""
        if dataset is None:
            return ""
        if not isinstance(dataset, AbstractDataset):
            raise dataset_error(dataset)
        record = DatasetRecord(
            dataset.id, dataset.definition(), dataset.name or "", dataset.version, dataset.description or ""
        )
        self._records[record.id] = record
        return record.id

    def to_plain(self) -> list[Any]:
        """The definitions of all datasets whose ids were asked for."""
        return [to_plain(record) for record in self._records.values()]
