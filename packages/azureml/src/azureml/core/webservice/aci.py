"""Shows `azureml.core.webservice.aci` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.aci import AciServiceDeploymentConfiguration as AciServiceDeploymentConfiguration
from trainmaster.sdk.v1.aci import AciWebservice as AciWebservice
