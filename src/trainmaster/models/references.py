"""The datasets that a model refers to: for what each was used, and samples of what goes in and comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.datasets.abstract import AbstractDataset
from trainmaster.errors import UserErrorException
from trainmaster.plain import to_plain
from trainmaster.records import DatasetRecord, DatasetUse


class References:
    """Datasets to be sent to the workspace, each once."""

    def __init__(self) -> None:
        self._records: dict[str, DatasetRecord] = {}

    def uses(self, datasets: Any) -> tuple[DatasetUse, ...]:
        """v1's list of pairs of a purpose and a dataset."""
        if datasets is None:
            return ()
        if isinstance(datasets, (str, bytes)) or not isinstance(datasets, Sequence):
            raise _wrong(datasets)
        return tuple(dict.fromkeys(self._use(each) for each in datasets))

    def _use(self, pair: Any) -> DatasetUse:
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise _wrong(pair)
        return DatasetUse(str(pair[0]), self.sample(pair[1]))

    def sample(self, dataset: Any) -> str:
        """The id of a dataset; empty for None."""
        if dataset is None:
            return ""
        if not isinstance(dataset, AbstractDataset):
            raise _wrong(dataset)
        record = DatasetRecord(
            dataset.id, dataset.definition(), dataset.name or "", dataset.version, dataset.description or ""
        )
        self._records[record.id] = record
        return record.id

    def plain(self) -> list[Any]:
        """All datasets that were named, to be sent."""
        return [to_plain(record) for record in self._records.values()]


def _wrong(value: Any) -> UserErrorException:
    return UserErrorException(
        f"{value!r:.200} is no reference to a dataset",
        hint="Give pairs: datasets=[('training', dataset)]. Samples are datasets themselves.",
    )
