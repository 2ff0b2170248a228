"""Shows `azureml.data.dataset_factory` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.script.dataset_readers import DataType as DataType
from trainmaster.sdk.datasets.factories import FileDatasetFactory as FileDatasetFactory
from trainmaster.sdk.datasets.factories import TabularDatasetFactory as TabularDatasetFactory
