"""Shows `azureml.core.authentication` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.errors import AuthenticationException as AuthenticationException
from trainmaster.sdk.v1.authentication import AbstractAuthentication as AbstractAuthentication
from trainmaster.sdk.v1.authentication import AzureCliAuthentication as AzureCliAuthentication
from trainmaster.sdk.v1.authentication import InteractiveLoginAuthentication as InteractiveLoginAuthentication
from trainmaster.sdk.v1.authentication import MsiAuthentication as MsiAuthentication
from trainmaster.sdk.v1.authentication import ServicePrincipalAuthentication as ServicePrincipalAuthentication
from trainmaster.sdk.v1.authentication import TokenAuthentication as TokenAuthentication
