"""Shows `azureml.train` to editors; never run. Written by `python -m trainmaster.migration.surface`."""
