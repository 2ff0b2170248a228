"""Shows `azureml.core.dataset` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datasets.dataset import Dataset as Dataset
