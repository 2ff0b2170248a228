"""`azureml.data.dataset_factory` inside a job."""

from trainmaster.job.script.dataset_readers import DataType
from trainmaster.job.script.datasets import FileDatasetFactory, TabularDatasetFactory

__all__ = ["DataType", "FileDatasetFactory", "TabularDatasetFactory"]
