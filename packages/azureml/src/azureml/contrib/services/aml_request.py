"""Shows `azureml.contrib.services.aml_request` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.scoring.server.raw import AMLRequest as AMLRequest
from trainmaster.scoring.server.raw import rawhttp as rawhttp
