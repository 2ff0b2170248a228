"""Shows `azureml.core.compute.remote` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.remote import RemoteCompute as RemoteCompute
