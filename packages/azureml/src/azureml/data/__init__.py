"""Shows `azureml.data` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.script.dataset_readers import DataType as DataType
from trainmaster.sdk.datasets.abstract import AbstractDataset as AbstractDataset
from trainmaster.sdk.datasets.file_dataset import FileDataset as FileDataset
from trainmaster.sdk.datasets.output import OutputFileDatasetConfig as OutputFileDatasetConfig
from trainmaster.sdk.datasets.tabular_dataset import TabularDataset as TabularDataset
