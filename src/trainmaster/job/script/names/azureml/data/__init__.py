"""`azureml.data` inside a job: the kinds of datasets; the rest stands for what the full Trainmaster has."""

import sys

from trainmaster.job.script.absent import LazyPackage
from trainmaster.job.script.datasets import FileDataset, TabularDataset

_homes = {
    "AbstractDataset": "abstract_dataset",
    "DataType": "dataset_factory",
    "OutputFileDatasetConfig": "output_dataset_config",
}
__all__ = ["FileDataset", "TabularDataset", *sorted(_homes)]

sys.modules[__name__].__class__ = LazyPackage
