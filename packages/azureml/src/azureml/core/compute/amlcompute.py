"""`azureml.core.compute.amlcompute` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.compute": "AmlCompute",
        "trainmaster.compute.status": "AmlComputeStatus ScaleSettings",
    },
)
