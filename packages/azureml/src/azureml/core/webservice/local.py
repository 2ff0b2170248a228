"""Shows `azureml.core.webservice.local` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.configurations import LocalWebserviceDeploymentConfiguration as LocalWebserviceDeploymentConfiguration
from trainmaster.sdk.services.local import LocalWebservice as LocalWebservice
