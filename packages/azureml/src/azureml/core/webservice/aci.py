"""`azureml.core.webservice.aci` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.services.aci": "AciWebservice",
        "trainmaster.sdk.services.configurations": "AciServiceDeploymentConfiguration",
    },
)
