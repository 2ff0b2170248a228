"""Shows `azureml.core.conda_dependencies` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.conda_dependencies import CondaDependencies as CondaDependencies
