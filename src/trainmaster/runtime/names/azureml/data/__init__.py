"""`azureml.data` inside a job: the kinds of datasets; the rest stands for what the full Trainmaster has."""

import sys

from trainmaster.runtime.absent import LazyPackage
from trainmaster.runtime.datasets import FileDataset, TabularDataset

_homes = {
    "AbstractDataset": "abstract_dataset",
    "DataType": "dataset_factory",
    "OutputFileDatasetConfig": "output_dataset_config",
}
__all__ = ["FileDataset", "TabularDataset", *sorted(_homes)]

sys.modules[__name__].__class__ = LazyPackage
