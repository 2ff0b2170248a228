"""Shows `azureml.telemetry` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.script.telemetry import set_diagnostics_collection as set_diagnostics_collection
