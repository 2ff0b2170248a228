"""`azureml.core.webservice` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.serving.aci": "AciWebservice",
        "trainmaster.serving.aks": "AksWebservice",
        "trainmaster.serving.local": "LocalWebservice",
        "trainmaster.serving.webservice": "Webservice",
    },
)
