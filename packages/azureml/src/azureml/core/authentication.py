"""`azureml.core.authentication` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.v1.authentication": (
            "AbstractAuthentication AzureCliAuthentication InteractiveLoginAuthentication MsiAuthentication "
            "ServicePrincipalAuthentication TokenAuthentication"
        ),
        "trainmaster.job.errors": "AuthenticationException",
    },
)
