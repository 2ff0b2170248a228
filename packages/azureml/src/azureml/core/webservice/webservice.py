"""Shows `azureml.core.webservice.webservice` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.configurations import WebserviceDeploymentConfiguration as WebserviceDeploymentConfiguration
from trainmaster.sdk.services.webservice import Webservice as Webservice
