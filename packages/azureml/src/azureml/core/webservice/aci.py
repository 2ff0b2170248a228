"""Shows `azureml.core.webservice.aci` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.aci import AciWebservice as AciWebservice
from trainmaster.sdk.services.configurations import AciServiceDeploymentConfiguration as AciServiceDeploymentConfiguration
