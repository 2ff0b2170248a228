"""Datasets: files and tables, read only when their data is wanted; named, versioned, given to runs."""

from trainmaster.datasets.abstract import AbstractDataset
from trainmaster.datasets.consumption import DatasetConsumptionConfig
from trainmaster.datasets.dataset import Dataset
from trainmaster.datasets.factories import FileDatasetFactory, TabularDatasetFactory
from trainmaster.datasets.file_dataset import FileDataset
from trainmaster.datasets.output import OutputDatasetConfig, OutputFileDatasetConfig, OutputTabularDatasetConfig
from trainmaster.datasets.tabular_dataset import TabularDataset
from trainmaster.runtime.dataset_readers import DataType, PromoteHeadersBehavior
from trainmaster.runtime.dataset_views import MountContext

__all__ = [
    "AbstractDataset",
    "DataType",
    "Dataset",
    "DatasetConsumptionConfig",
    "FileDataset",
    "FileDatasetFactory",
    "MountContext",
    "OutputDatasetConfig",
    "OutputFileDatasetConfig",
    "OutputTabularDatasetConfig",
    "PromoteHeadersBehavior",
    "TabularDataset",
    "TabularDatasetFactory",
]
