"""Shows `azureml.widgets` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.notebook.widgets.run_details import RunDetails as RunDetails
