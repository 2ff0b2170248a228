"""The name of 2018 and 2019 for `azureml.tensorboard`."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.notebook.tensorboard": "Tensorboard",
    },
)
