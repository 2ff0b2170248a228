"""Shows `azureml.core.script_run` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.run.run import ScriptRun as ScriptRun
