"""The name of 2018 for `azureml.widgets`."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.notebook.widgets": "RunDetails",
    },
)
