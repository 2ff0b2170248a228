"""Shows `azureml.data.abstract_dataset` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datasets.abstract import AbstractDataset as AbstractDataset
