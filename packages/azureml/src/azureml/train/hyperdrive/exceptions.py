"""Shows `azureml.train.hyperdrive.exceptions` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.errors import HyperDriveConfigException as HyperDriveConfigException
from trainmaster.job.errors import HyperDriveNotImplementedException as HyperDriveNotImplementedException
from trainmaster.job.errors import HyperDriveRehydrateException as HyperDriveRehydrateException
from trainmaster.job.errors import HyperDriveScenarioNotSupportedException as HyperDriveScenarioNotSupportedException
