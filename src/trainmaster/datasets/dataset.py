"""Dataset: the way to all datasets."""

from __future__ import annotations

from trainmaster.datasets.abstract import AbstractDataset
from trainmaster.datasets.factories import FileDatasetFactory, TabularDatasetFactory


class Dataset(AbstractDataset):
    """Makes datasets with `Dataset.File` and `Dataset.Tabular`, and finds registered ones by name or id.

    mnist = Dataset.File.from_files((workspace.get_default_datastore(), 'mnist'))
    mnist.register(workspace, 'mnist')
    Dataset.get_by_name(workspace, 'mnist').to_path()
    """

    File = FileDatasetFactory
    Tabular = TabularDatasetFactory
