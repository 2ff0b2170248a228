"""`azureml.contrib.services.aml_response` of v1. In a service, the server itself answers this import."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.scoring.server.raw": "AMLResponse",
    },
)
