"""`azureml.core.authentication` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.authentication": (
            "AbstractAuthentication AzureCliAuthentication InteractiveLoginAuthentication MsiAuthentication "
            "ServicePrincipalAuthentication TokenAuthentication"
        ),
        "trainmaster.errors": "AuthenticationException",
    },
)
