"""Shows `azureml.tensorboard` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.notebook.tensorboard.board import Tensorboard as Tensorboard
