"""Shows `azureml.core.profile` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.profiling import ModelProfile as ModelProfile
