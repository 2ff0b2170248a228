"""Shows `azureml.data.datapath` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datastores.datapath import DataPath as DataPath
from trainmaster.sdk.datastores.datapath import DataPathComputeBinding as DataPathComputeBinding
