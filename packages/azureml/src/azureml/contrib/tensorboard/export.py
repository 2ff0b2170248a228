"""`azureml.contrib.tensorboard.export` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.notebook.tensorboard": "export_to_tensorboard",
    },
)
