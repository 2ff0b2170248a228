"""Shows `azureml.train.hyperdrive.run` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.sweeps.run import HyperDriveRun as HyperDriveRun
from trainmaster.tuning.goal import PrimaryMetricGoal as PrimaryMetricGoal
