"""Shows `azureml.data.tabular_dataset` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datasets.tabular_dataset import TabularDataset as TabularDataset
