"""Shows `azureml.core.webservice` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.aci import AciWebservice as AciWebservice
from trainmaster.sdk.services.aks import AksWebservice as AksWebservice
from trainmaster.sdk.services.local import LocalWebservice as LocalWebservice
from trainmaster.sdk.services.webservice import Webservice as Webservice
