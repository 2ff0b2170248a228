"""Datasets: files and tables, read only when their data is wanted; named, versioned, given to runs."""

from trainmaster.job.script.dataset_readers import DataType, PromoteHeadersBehavior
from trainmaster.job.script.dataset_views import MountContext
from trainmaster.sdk.datasets.abstract import AbstractDataset
from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig
from trainmaster.sdk.datasets.dataset import Dataset
from trainmaster.sdk.datasets.factories import FileDatasetFactory, TabularDatasetFactory
from trainmaster.sdk.datasets.file_dataset import FileDataset
from trainmaster.sdk.datasets.output import OutputDatasetConfig, OutputFileDatasetConfig, OutputTabularDatasetConfig
from trainmaster.sdk.datasets.tabular_dataset import TabularDataset

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
