"""Shows `azureml.data.output_dataset_config` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datasets.output import OutputDatasetConfig as OutputDatasetConfig
from trainmaster.sdk.datasets.output import OutputFileDatasetConfig as OutputFileDatasetConfig
from trainmaster.sdk.datasets.output import OutputTabularDatasetConfig as OutputTabularDatasetConfig
