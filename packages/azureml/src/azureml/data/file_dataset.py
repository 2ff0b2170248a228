"""Shows `azureml.data.file_dataset` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datasets.file_dataset import FileDataset as FileDataset
