"""The datasets that a model refers to: for what each was used, and samples of what goes in and comes out."""

from __future__ import annotations

from typing import Any

from trainmaster.job.script.model_rules import dataset_uses, no_dataset
from trainmaster.sdk.datasets.abstract import AbstractDataset
from trainmaster.shared.records import DatasetRecord, DatasetUse
from trainmaster.shared.serialization import to_plain


class References:
    """Datasets to be sent to the workspace, each once."""

    def __init__(self) -> None:
        self._records: dict[str, DatasetRecord] = {}

    def uses(self, datasets: Any) -> tuple[DatasetUse, ...]:
        """v1's list of pairs of a purpose and a dataset."""
        return tuple(DatasetUse(**use) for use in dataset_uses(datasets, self.sample))

    def sample(self, dataset: Any) -> str:
        """The id of a dataset; empty for None."""
        if dataset is None:
            return ""
        if not isinstance(dataset, AbstractDataset):
            raise no_dataset(dataset)
        record = DatasetRecord(
            dataset.id, dataset.definition(), dataset.name or "", dataset.version, dataset.description or ""
        )
        self._records[record.id] = record
        return record.id

    def plain(self) -> list[Any]:
        """All datasets that were named, to be sent."""
        return [to_plain(record) for record in self._records.values()]
