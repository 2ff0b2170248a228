"""Shows `azureml.contrib.services` to editors; never run. Written by `python -m trainmaster.migration.surface`."""
