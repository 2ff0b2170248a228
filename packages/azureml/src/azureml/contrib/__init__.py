"""Shows `azureml.contrib` to editors; never run. Written by `python -m trainmaster.migration.surface`."""
