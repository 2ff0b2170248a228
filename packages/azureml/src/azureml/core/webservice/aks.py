"""`azureml.core.webservice.aks` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.serving.aks": "AksWebservice",
        "trainmaster.serving.configurations": "AksServiceDeploymentConfiguration",
    },
)
