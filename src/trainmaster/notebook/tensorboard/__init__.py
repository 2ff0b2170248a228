"""TensorBoard on the logs of runs while they grow, and the metrics of runs as event files for TensorBoard."""

from trainmaster.notebook.tensorboard.board import Tensorboard
from trainmaster.notebook.tensorboard.export import export_to_tensorboard

__all__ = ["Tensorboard", "export_to_tensorboard"]
