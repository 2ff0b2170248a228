"""TensorBoard on the logs of runs while they go, and a run's metrics as TensorBoard's event files."""

from trainmaster.notebook.tensorboard.board import Tensorboard
from trainmaster.notebook.tensorboard.export import export_to_tensorboard

__all__ = ["Tensorboard", "export_to_tensorboard"]
