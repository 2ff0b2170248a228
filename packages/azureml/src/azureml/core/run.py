"""Shows `azureml.core.run` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.script.offline import OfflineRun as _OfflineRun
from trainmaster.job.script.run import JobRun as _SubmittedRun
from trainmaster.sdk.run.run import Run as Run
from trainmaster.sdk.run.run import get_run as get_run
