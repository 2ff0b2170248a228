"""Shows `azureml.core.script_run_config` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig as ScriptRunConfig
