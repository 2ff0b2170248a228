"""Shows `azureml.core.webservice.aks` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.aks import AksWebservice as AksWebservice
from trainmaster.sdk.v1.service_configurations import AksServiceDeploymentConfiguration as AksServiceDeploymentConfiguration
