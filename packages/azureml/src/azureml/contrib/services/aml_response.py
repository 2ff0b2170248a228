"""Shows `azureml.contrib.services.aml_response` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.scoring.server.raw import AMLResponse as AMLResponse
