"""Shows `azureml.core.webservice.aks` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.aks import AksWebservice as AksWebservice
from trainmaster.sdk.services.configurations import AksServiceDeploymentConfiguration as AksServiceDeploymentConfiguration
