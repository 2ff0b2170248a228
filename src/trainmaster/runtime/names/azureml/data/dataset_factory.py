"""`azureml.data.dataset_factory` inside a job."""

from trainmaster.runtime.dataset_readers import DataType
from trainmaster.runtime.datasets import FileDatasetFactory, TabularDatasetFactory

__all__ = ["DataType", "FileDatasetFactory", "TabularDatasetFactory"]
