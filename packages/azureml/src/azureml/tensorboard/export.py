"""Shows `azureml.tensorboard.export` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.notebook.tensorboard.export import export_to_tensorboard as export_to_tensorboard
