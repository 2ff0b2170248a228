"""Shows `azureml.core.webservice` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.local import LocalWebservice as LocalWebservice
from trainmaster.sdk.services.webservice import Webservice as Webservice
from trainmaster.sdk.v1.aci import AciWebservice as AciWebservice
from trainmaster.sdk.v1.aks import AksWebservice as AksWebservice
