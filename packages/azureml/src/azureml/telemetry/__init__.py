"""`azureml.telemetry` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.v1.telemetry": "set_diagnostics_collection",
    },
)
