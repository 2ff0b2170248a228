"""Shows `azureml.data.dataset_consumption_config` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig as DatasetConsumptionConfig
