"""Shows `azureml.train.hyperdrive.runconfig` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.sweeps.config import HyperDriveConfig as HyperDriveConfig
from trainmaster.sdk.sweeps.config import HyperDriveRunConfig as HyperDriveRunConfig
from trainmaster.tuning.goal import PrimaryMetricGoal as PrimaryMetricGoal
