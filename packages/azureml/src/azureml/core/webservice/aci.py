"""Shows `azureml.core.webservice.aci` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.aci import AciWebservice as AciWebservice
from trainmaster.sdk.v1.service_configurations import AciServiceDeploymentConfiguration as AciServiceDeploymentConfiguration
